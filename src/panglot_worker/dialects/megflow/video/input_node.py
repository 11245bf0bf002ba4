"""VideoInput: videos that the graph file names, each with a subgraph instance of its own."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from panglot_worker.dialects.megflow.video.server_node import options_of
from panglot_worker.dialects.megflow.video.streams import Stream
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video import sources
from panglot_worker.video.ledger import Progress
from panglot_worker.video.limits import limits_of, rules_for_graphs
from panglot_worker.video.playback import STOPPED


class VideoInput:
    """A node that plays the videos of its argument `urls`, `repeat` times each, all at once.

    Their results are dropped.
    """

    inp: Any
    out: Any

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        self.name = name
        self.args = args

    def panglot_attach(self, thread: Any) -> None:
        self.runtime = thread.runtime
        self.options = options_of(self.args, {})

    def exec(self) -> None:
        """Start all streams, and wait until they are over."""
        settings = self.runtime.settings
        limits = limits_of(settings)
        rules = rules_for_graphs(settings, os.path.dirname(self.runtime.config.file))
        way = (self.out[0], self.out[1], self.inp[1] if hasattr(self, "inp") else "")
        streams: List[Stream] = []
        for _ in range(int(self.args.get("repeat", 1))):
            for url in self.args.get("urls", []):
                try:
                    source = sources.find(str(url), rules)
                except AddressRefused as error:
                    self.runtime.skipped(self.name, "%s: %s" % (url, error))
                    continue
                number = Progress(len(streams) + 1)
                stream = Stream(number, source, self.options, limits, rules, lambda kind: None)
                stream.start(way, self._over)
                streams.append(stream)
        for stream in streams:
            stream.wait()

    def _over(self, stream: Stream) -> None:
        playback = stream.playback
        if playback.state != STOPPED and playback.error:
            self.runtime.skipped(self.name, "the rest of %s: %s" % (playback.source.shown, playback.error))
        complaint = stream.frames_in_graph.complaint()
        if complaint:
            self.runtime.skipped(self.name, "a part of %s: %s" % (playback.source.shown, complaint))


NODES: Dict[str, Any] = {"VideoInput": VideoInput}
