"""Streams outlive their worker: its successor finds them in the ledger, and goes on with them."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.dialects.megflow.video.streams import Stream
from panglot_worker.video.decoder_process import Sampling
from panglot_worker.video.ledger import Entry, Ledger, Progress
from panglot_worker.video.playback import PlaybackOptions

DIED, REPLACED = "its worker died", "its worker was replaced"


class Orphan(NamedTuple):
    """A stream whose worker has ended."""

    entry: Entry
    url: str
    """The address as its client wrote it."""
    options: PlaybackOptions
    before: Progress
    """How far it has come, and where it goes on."""
    gap: Dict[str, Any]
    """The event for subscribers."""


class Survival:
    """Notes the streams of one server node for the next worker, and finds those of the worker before.

    Without a ledger there is no next worker, and it does nothing.
    """

    def __init__(self, ledger: Optional[Ledger], node: str) -> None:
        self._ledger = ledger
        self._node = node
        self._count = 0
        self._lock = threading.Lock()
        self._leaving = False
        self.my_turn = threading.Event()
        """Set once the worker before this one plays its streams no more."""
        if ledger is None:
            self.my_turn.set()

    def number(self) -> int:
        """The number of a new stream."""
        if self._ledger is not None:
            return self._ledger.next_number()
        self._count += 1
        return self._count - 1

    def note(self, stream: Stream) -> None:
        """Remember a stream from now on, as long as it is not over."""
        options, url = stream.playback.options, stream.playback.source.as_written
        about = {"node": self._node, "url": url, "every": options.sampling.every, "fps": options.sampling.fps,
                 "drop": options.drop}  # fmt: skip
        with self._lock:
            # Under the lock that `leave` takes: after it, nothing new is noted for the successor.
            wanted = url and not self._leaving and not stream.is_noted and not stream.over.is_set()
            if self._ledger is not None and wanted:
                stream.keep_in(self._ledger.claim(about, stream.progress()))

    def forget(self, stream: Stream) -> None:
        """Forget a stream that is over, or was stopped. A worker that ends forgets none: it stops them itself."""
        with self._lock:
            if not self._leaving:
                stream.keep_in(None)

    def leave(self) -> None:
        """The worker ends: the streams that are remembered now are for its successor."""
        with self._lock:
            self._leaving = True
        self.my_turn.set()

    def orphans(self) -> List[Orphan]:
        """The streams of this node that a worker before this one played."""
        if self._ledger is None or self._leaving:
            return []
        entries = [entry for entry in self._ledger.entries() if entry.about["node"] == self._node]
        return sorted((orphan(entry) for entry in entries), key=lambda orphaned: orphaned.before.number)


def orphan(entry: Entry) -> Orphan:
    """The stream that an entry of the ledger tells of, and where it goes on."""
    left, about = entry.read(), entry.about
    before = resumed(left)
    gap = {
        "frame": before.first, "lost": before.lost - left.lost, "seconds": round(time.monotonic() - left.at, 3),
        "reason": REPLACED if left.released else DIED,
    }  # fmt: skip
    options = PlaybackOptions(Sampling(int(about["every"]), float(about["fps"])), str(about["drop"]))
    return Orphan(entry, str(about["url"]), options, before, gap)


def resumed(left: Progress) -> Progress:
    """The progress with which a stream goes on.

    Of a file the frames that were in the graph go in again, but not a second time after a second death: one of them may
    be why. Those of a live source are gone.
    """
    deaths = 0 if left.released else left.deaths + 1
    # Live: behind the newest frame. A file: at the oldest frame in the graph, or behind all of them.
    first = max(left.decoded, left.entered) if left.live else left.entered if deaths > 1 else left.first
    return left._replace(
        first=first,
        entered=first,
        underway=0,
        lost=left.lost + (left.underway if left.live or deaths > 1 else 0),
        results_dropped=left.results_dropped + left.results - left.taken,
        reconnects=left.reconnects + 1,
        restarts=left.restarts + 1,
        deaths=deaths,
        released=0,
    )


def as_text(gap: Dict[str, Any]) -> str:
    return json.dumps(gap)
