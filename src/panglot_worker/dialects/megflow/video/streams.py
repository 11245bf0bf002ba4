"""A video that goes through a subgraph of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from panglot_worker.dialects.megflow.graph.building import Instance, Template
from panglot_worker.dialects.megflow.graph.channels import Sink
from panglot_worker.dialects.megflow.graph.envelope import EMPTY, Contents
from panglot_worker.dialects.megflow.video import images
from panglot_worker.dialects.megflow.video.frames_in_graph import FramesInGraph
from panglot_worker.video.decoder_process import VideoFrame, VideoSource
from panglot_worker.video.history import ResultHistory
from panglot_worker.video.ledger import Entry, Progress
from panglot_worker.video.limits import SourceRules, VideoLimits
from panglot_worker.video.playback import FAILED, OVER, RUNNING, Before, Playback, PlaybackOptions

IN_GRAPH = 24
"""The most frames that are stored for viewers until their results come back, since nodes draw into frames."""
WATCHED = 10.0
"""Seconds for which pictures are stored after the last look of a viewer."""


def encoded(picture: Any) -> Any:
    """A picture as a JPEG; None stays None. Raises ValueError when it is no picture."""
    return picture if picture is None or isinstance(picture, bytes) else images.encode(picture)


class Stream:
    """One video and its subgraph. `before` is its number, and how far it came in workers before this one.

    `bad` gets the type of a result that cannot be used; `over` is set when the video has ended and nothing of it is
    left in the subgraph.
    """

    def __init__(
        self,
        before: Progress,
        source: VideoSource,
        options: PlaybackOptions,
        limits: VideoLimits,
        rules: SourceRules,
        bad: Callable[[str], None],
    ) -> None:
        self.number = before.number
        self.results = ResultHistory(limits.results, before.results, before.marks, before.results_dropped)
        known = Before(
            before.first, before.decoded, before.dropped, before.reconnects, bool(before.live), before.began
        )  # fmt: skip
        self.playback = Playback(source, options, limits, rules, self._deliver, known)
        self.frames_in_graph = FramesInGraph(before.first, before.answered, before.unanswered, before.lost)
        self._before = before
        self._entry: Optional[Entry] = None
        self._released = False
        self._keeping = threading.Lock()
        """Held while a result is noted and sent."""
        self.over = threading.Event()
        self.lag = 0.0
        self._bad = bad
        self._thread: Optional[threading.Thread] = None
        self._instance: Optional[Instance] = None
        self._sender: Any = None
        self._counted = (time.monotonic(), 0, 0)
        self._lock = threading.Lock()
        self._watched_until = 0.0
        self._frames: Deque[Tuple[int, Any]] = deque(maxlen=IN_GRAPH)
        self._picture: Any = None
        self._last: Any = None

    def start(self, way: Tuple[Template, str, str], ended: Callable[["Stream"], None]) -> None:
        """Make the subgraph, then play in a thread. Raises what the construction of nodes raises."""
        template, entrance, exit_ = way
        try:
            self._instance = template.open(outputs={exit_: Sink(self._result)}, origin=self.frames_in_graph)
        except BaseException:
            self.playback.source.close()
            raise
        self._sender = self._instance.inputs[entrance]
        self._thread = threading.Thread(target=self._run, args=(ended,), name="stream %d" % self.number, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the stream is over, and its end has been reported."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, ended: Callable[["Stream"], None]) -> None:
        instance = self._instance
        assert instance is not None
        try:
            self.playback.run()
            instance.close()
            instance.wait()
        finally:
            self._instance = self._sender = None
            with self._lock:
                self._frames.clear()
            self._keep_last_picture()
            self.frames_in_graph.finish()
            # In this order: code that lists the stream looks at `over` first, and `ended` takes it off the lists.
            self.over.set()
            ended(self)

    def _keep_last_picture(self) -> None:
        """Store the last picture as a JPEG: frames are in the decoder's memory, and many ended streams are stored."""
        last, self._last = self._picture if self._picture is not None else self._last, None
        self._picture = None
        if not self.playback.stopping:
            with contextlib.suppress(ValueError, ImportError):
                self._last = encoded(last)

    def stop(self) -> None:
        """End the stream now: what waits anywhere in its subgraph is dropped."""
        self.playback.stop()
        instance = self._instance
        if instance is not None:
            for thread in instance.threads:
                for receiver in thread.receivers:
                    receiver.channel.close()

    def fail(self, error: str) -> None:
        """End the stream with this error, before it begins."""
        self.playback.state, self.playback.error = FAILED, error
        self.playback.source.close()
        self.over.set()

    # For the worker that comes next

    @property
    def is_noted(self) -> bool:
        return self._entry is not None

    def keep_in(self, entry: Optional[Entry]) -> None:
        """Note in this entry from now on how far the stream has come; None: note no more, and free the entry."""
        with self._keeping:
            if self._entry is not None:
                self._entry.free()
            self._entry = entry

    def keep(self) -> None:
        """Note in the ledger how far the stream has come."""
        with self._keeping:
            self._note()

    def _note(self, more: int = 0) -> None:
        """`more` results are about to be added."""
        if self._entry is not None and not self._released:
            self._entry.write(self.progress()._replace(results=self.results.count + more))

    def release(self) -> None:
        """Note for the last time how far the stream has come: from now on no frame gets an answer here."""
        with self._keeping:
            if self._entry is not None and not self._released:
                self._entry.write(self.progress()._replace(released=1))
            self._released = True

    def progress(self) -> Progress:
        """How far the stream has come, as the worker that comes next needs to know."""
        playback, results, before, counts = self.playback, self.results, self._before, self.frames_in_graph.figures()
        first, entered, underway = self.frames_in_graph.extent()
        moved = counts["analysed"] > before.answered + before.unanswered
        return Progress(
            self.number, first, entered, underway, playback.decoded, results.count, results.marks, results.taken,
            results.dropped, counts["analysed"] - counts["unanswered"], counts["unanswered"], counts["lost"],
            playback.dropped, playback.reconnects, before.restarts, 0 if moved else before.deaths, int(playback.live),
            0, playback.began, time.monotonic(),
        )  # fmt: skip

    # Frames in, results out

    def _deliver(self, frame: VideoFrame) -> None:
        contents = Contents({"data": frame.array}, self.frames_in_graph.enter(frame.number, frame.seconds))
        # Before it is sent: this frame may be the one that kills the worker.
        self.keep()
        contents.from_addr = self.number
        contents.partial_id = frame.number
        self._last = frame.array
        with self._lock:
            if time.monotonic() < self._watched_until:
                self._frames.append((frame.number, frame.array))
            else:
                self._frames.clear()
        sender = self._sender
        sender.count += 1
        sender.put(contents)

    def _result(self, contents: Contents) -> None:
        """Take a result, in the thread of whichever node sends it."""
        if contents.msg is EMPTY or self.playback.stopping:
            return
        number, token = contents.partial_id, contents.token
        if number is None and token is not None:
            number = token.subject.number
        sent, seconds = self.frames_in_graph.times(number)
        if sent is not None:
            self.lag = time.monotonic() - sent
        message = contents.msg
        if isinstance(message, dict) and "data" in message:
            self._picture = message["data"]
            message = message.get("message", "")
        else:
            self._picture = self._frame_of(number)
        if not isinstance(message, str):
            self._bad(type(message).__name__)
        with self._keeping:
            if self._released:
                return
            has_text = isinstance(message, str) and (message != "" or not isinstance(contents.msg, dict))
            self.frames_in_graph.answer(number)
            # Noted before it is sent: after a worker's death, clients ask for the results behind the last they have.
            self._note(int(has_text))
            if has_text:
                self.results.add(number, seconds, message)

    def _frame_of(self, number: Optional[int]) -> Any:
        """The frame of a result, if it is stored; earlier frames are dropped."""
        with self._lock:
            while number is not None and self._frames and self._frames[0][0] <= number:
                frame_number, array = self._frames.popleft()
                if frame_number == number:
                    return array
        return None

    # Looking

    def picture(self) -> Any:
        """The last frame a result came back for, else the last that was sent; None before the first.

        Once the stream is over it is a JPEG already.
        """
        self._watched_until = time.monotonic() + WATCHED
        return self._picture if self._picture is not None else self._last

    def rates(self) -> Dict[str, float]:
        """Frames per second since the last call."""
        now, decoded, analysed = time.monotonic(), self.playback.decoded, self.frames_in_graph.figures()["analysed"]
        then, self._counted = self._counted, (now, decoded, analysed)
        seconds = max(now - then[0], 1e-3)
        return {
            "decoded_fps": round((decoded - then[1]) / seconds, 1),
            "analysed_fps": round((analysed - then[2]) / seconds, 1),
        }

    def about(self) -> Dict[str, Any]:
        """What `/list` tells of the stream."""
        playback = self.playback
        facts: Dict[str, Any] = {"id": self.number, "url": playback.source.shown, **playback.figures()}
        facts.update(self.frames_in_graph.figures(), results=self.results.count - self.results.marks)
        facts.update(results_dropped=self.results.dropped, restarts=self._before.restarts)
        facts["error"] = facts["error"] or self.frames_in_graph.complaint()
        if playback.state in OVER and not self.over.is_set():
            # Its last frames are still in the graph.
            facts["state"] = RUNNING
        return facts
