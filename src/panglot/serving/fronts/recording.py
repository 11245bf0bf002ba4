"""`--record FILE` with several fronts: the first front writes the file, the other fronts send their pairs to it.

A frame of another front holds a pair, or none, and the numbers of pairs that the front has dropped and left out since
its last frame. The first front answers each frame. Until then the pair counts as memory of the front that sent it. So
no more than its share of `--record-memory` is ever under way, and a front without answers drops further pairs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable
from typing import Any

from panglot.engine.workers.link import Link
from panglot.errors import StartError
from panglot.fronts.lending.sibling import PAIRS
from panglot.fronts.member import Member
from panglot.recording.recorder import Recorder
from panglot.recording.recording import Pair, head_of, pair_of
from panglot.recording.sink import PAIR_COST, PairSink, RecorderOptions
from panglot.serving.recording import OwnRecording, options_of
from panglot.settings import Settings
from panglot_worker.line import calls, wire

OWNER = 0
"""The index of the front that writes the file."""
PATIENCE = 4.0
"""Seconds that fronts which end wait for each other's last pairs."""
LOST = "the disk was too slow or a front died"

log = logging.getLogger("panglot.record")


def recording_of_front(
    settings: Settings, secrets: Iterable[bytes], member: Member
) -> RecordingForFronts | RecordingElsewhere | None:
    """The part of this front in the recording of its server. Raises StartError when the file cannot be created."""
    options = options_of(settings, secrets)
    if member.index != OWNER:
        elsewhere = RecordingElsewhere(options, member.index * options.sampling.every // member.count)
        member.siblings.users[PAIRS] = elsewhere
        return elsewhere
    try:
        recorder = Recorder(options)
    except StartError as error:
        if not member.catalog.is_loaded:
            raise
        # The server has served already: trouble with the disk ends the recording, and nothing else.
        log.warning("the recording has ended: %s", error.sentence())
        member.siblings.users[PAIRS] = EndedRecording()
        return None
    recorder.why_dropped = LOST
    owner = member.siblings.users[PAIRS] = RecordingForFronts(recorder)
    return owner


class RecordingForFronts:
    """The recording in the front that writes it. A `LinkUser`."""

    def __init__(self, recorder: Recorder) -> None:
        self.sink = recorder
        self._own = OwnRecording(recorder)
        self._links: dict[int, Link] = {}
        self._last_left = asyncio.Event()

    def linked(self, front: int, link: Link) -> None:
        self._links[front] = link

    def lost(self, front: int) -> None:
        self._links.pop(front, None)
        if not self._links:
            self._last_left.set()

    def heard(self, front: int, payload: memoryview) -> None:
        """Take a pair of another front, and answer. Raises WireError."""
        text, bodies = calls.read(payload)
        about = wire.json_object(text)
        self.sink.dropped += about["dropped"]
        self.sink.skipped += about["skipped"]
        if about["pair"] is not None:
            self._take(about["pair"], bodies)
        link = self._links.get(front)
        if link is not None:
            link.send(calls.frame(PAIRS, 0, {"recording": self.sink.recording}))
        if about["ends"]:
            self.lost(front)

    def _take(self, head: dict[str, Any], bodies: memoryview) -> None:
        recorder, size = self.sink, PAIR_COST + len(bodies)
        middle = head["bodies"][0]
        if not recorder.recording:
            recorder.skipped += 1
        elif not recorder.take(size):
            recorder.dropped += 1
        else:
            try:
                pair = pair_of(head, (bytes(bodies[:middle]), bytes(bodies[middle:])))
            except ValueError:
                recorder.release(size)
                recorder.skipped += 1
                return
            # All fronts have one clock. A request may have begun before this front did.
            pair.at = max(0.0, pair.at - recorder.began)
            recorder.offer(pair, size)

    async def close(self) -> None:
        """Wait for the last pairs of the other fronts, for a few seconds at most, and close the file."""
        if self._links:
            self._last_left.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._last_left.wait()
        await self._own.close()


class EndedRecording:
    """Tells the other fronts that nothing is recorded any more. A `LinkUser`."""

    def __init__(self) -> None:
        self._links: dict[int, Link] = {}

    def linked(self, front: int, link: Link) -> None:
        self._links[front] = link

    def lost(self, front: int) -> None:
        self._links.pop(front, None)

    def heard(self, front: int, payload: memoryview) -> None:
        self._links[front].send(calls.frame(PAIRS, 0, {"recording": False}))


class RecordingElsewhere(PairSink):
    """The recording in a front that does not write it. A `LinkUser`."""

    def __init__(self, options: RecorderOptions, turn: int) -> None:
        super().__init__(options, turn)
        self.sink = self
        self._link: Link | None = None
        """None while there is no front that writes."""
        self._sent: deque[int] = deque()
        """The sizes of the frames that were sent and not answered yet."""
        self._all_taken = asyncio.Event()

    def offer(self, pair: Pair, size: int) -> None:
        if self._link is None:
            self.release(size)
            self.dropped += 1
        else:
            self._send(pair, size)

    def _send(self, pair: Pair | None, size: int, ends: bool = False) -> None:
        assert self._link is not None
        head, bodies = (head_of(pair), (pair.request.body, pair.answer.body)) if pair is not None else (None, ())
        about = {"pair": head, "dropped": self.dropped, "skipped": self.skipped, "ends": ends}
        self.dropped = self.skipped = 0
        self._sent.append(size)
        self._all_taken.clear()
        self._link.send(calls.frame(PAIRS, 0, about, bodies))

    # As LinkUser

    def linked(self, front: int, link: Link) -> None:
        if front == OWNER:
            # Pairs that an earlier link has sent are not sent again: they may be in the file.
            self.lost(front)
            self._link = link
            self._send(None, 0)

    def lost(self, front: int) -> None:
        """Count the pairs that the front which writes may not have written before it died."""
        if front == OWNER:
            # Recording again: the next front that writes tells whether it does.
            self._link, self.recording = None, True
            # Frames with a pair have a size, frames with numbers alone have none.
            self.dropped += sum(size > 0 for size in self._sent)
            self.release(sum(self._sent))
            self._sent.clear()
            self._all_taken.set()

    def heard(self, front: int, payload: memoryview) -> None:
        """Note that the oldest frame without an answer is taken. Raises WireError."""
        self.recording = wire.json_object(calls.read(payload)[0])["recording"]
        if self._sent:
            self.release(self._sent.popleft())
        if not self._sent:
            self._all_taken.set()

    async def close(self) -> None:
        """Wait until the other front has taken all pairs, for a few seconds at most."""
        if self._link is not None:
            self._send(None, 0, ends=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._all_taken.wait()
