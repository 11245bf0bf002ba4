"""One stream from start to end: its decoders one after the other, its retries, and its state."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, NamedTuple, Optional, Tuple

from panglot_worker.video.decoder_process import DecoderProcess, Ended, Sampling, VideoFrame, VideoSource
from panglot_worker.video.limits import SourceRules, VideoLimits

OPENING, RUNNING, RETRYING = "opening", "running", "retrying"
FINISHED, FAILED, STOPPED = "finished", "failed", "stopped"
OVER = (FINISHED, FAILED, STOPPED)
OLDEST, BLOCK = "oldest", "block"
WAITING = 2
"""How many frames may wait between the decoder and their user."""
FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
RETRIED = ("dropped", "stalled", "crashed", "unreachable")
"""Reasons for the end of a live source after which it is opened again."""


class PlaybackOptions(NamedTuple):
    """How a stream is played: which frames, whether late frames are dropped, and when it is opened again."""

    sampling: Sampling = Sampling()
    drop: str = BLOCK
    retry_delay: float = FIRST_DELAY


class Before(NamedTuple):
    """How far a stream had come in a worker before this one."""

    first: int = 0
    """The number of the frame at which a file goes on."""
    decoded: int = 0
    dropped: int = 0
    reconnects: int = 0
    live: bool = False
    began: float = 0.0
    """When it begins, by the monotonic clock; 0: now."""


NOTHING_BEFORE = Before()


class Playback:
    """Plays one stream. `deliver` gets its frames in order, in a thread of the stream, and may take its time.

    `run` plays; the other methods may be called from any thread meanwhile.
    """

    def __init__(
        self,
        source: VideoSource,
        options: PlaybackOptions,
        limits: VideoLimits,
        rules: SourceRules,
        deliver: Callable[[VideoFrame], None],
        before: Before = NOTHING_BEFORE,
    ) -> None:
        self.source = source
        self.options = options
        self.limits = limits
        self.rules = rules
        self.deliver = deliver
        self.state = OPENING
        self.error = ""
        self.reason = ""
        self.detail = ""
        """`reason` is one word for the error; `detail` is more text about it, for the log alone."""
        self.decoded = before.decoded
        self.dropped = before.dropped
        self.reconnects = before.reconnects
        self.live = before.live
        self.began = before.began or time.monotonic()
        self._first = before.first
        self._decoder: Optional[DecoderProcess] = None
        self._stopping = threading.Event()
        self._opened = threading.Event()
        self._waiting: Deque[VideoFrame] = deque()
        self._changed = threading.Condition()
        self._exhausted = False
        self._failures = 0
        self._ever = before.live
        """Whether the source was opened successfully before."""

    # From outside

    def wait_opened(self, seconds: float) -> bool:
        """Wait until the source was opened, or has failed; whether that took at most so many seconds."""
        return self._opened.wait(seconds)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """End the stream now, from any thread; frames that wait are dropped."""
        # Set before the decoder is looked at: `_play` makes the decoder first and looks at the flag after that, so that
        # one of the two always sees the other.
        self._stopping.set()
        # A local name: the stream's own thread may set the attribute to None at any time.
        decoder = self._decoder
        if decoder is not None:
            decoder.kill()
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    # Its thread

    def run(self) -> None:
        """Play until the stream is over. `state` and `error` then tell how it ended."""
        feeder = threading.Thread(target=self._feed, name="feed", daemon=True)
        feeder.start()
        try:
            state, error = self._play_on()
        except Exception as failure:  # noqa: BLE001  the stream's state says what it was
            state, error = FAILED, "%s: %s" % (type(failure).__name__, failure)
        finally:
            with self._changed:
                self._exhausted = True
                self._changed.notify_all()
            # The frames that wait are delivered before the stream counts as over.
            feeder.join()
            self.source.close()
        # `error` before `state`: a reader that sees the stream is over finds the reason.
        self.error = error
        self.state = STOPPED if self._stopping.is_set() else state
        self._opened.set()

    def _play_on(self) -> Tuple[str, str]:
        """Open and decode, again and again where the source is live."""
        while True:
            ended = self._play()
            self.reason, self.detail = ended.kind, ended.detail
            if self._stopping.is_set() or ended.kind in ("", "limit"):
                return FINISHED, ""
            # A source that could never be opened is not retried: its address is most likely wrong.
            if not self.live or ended.kind not in RETRIED or not self._ever or self._failures >= self.limits.retries:
                return FAILED, ended.message
            self.state, self.error = RETRYING, ended.message
            delay = min(LONGEST_DELAY, self.options.retry_delay * 2**self._failures)
            self._failures += 1
            # Not `sleep`: stopping must not wait for the delay.
            if self._stopping.wait(delay):
                return STOPPED, ""
            self.reconnects += 1

    def _play(self) -> Ended:
        decoder = self._decoder = DecoderProcess(
            self.source, self.options.sampling, self._limits_left(), self.rules, self._first
        )
        earlier = self.decoded
        try:
            if self._stopping.is_set():
                return Ended("")
            while True:
                frame = decoder.next()
                offset = self._note(decoder, earlier)
                if decoder.decoded:
                    self._failures = 0
                if not self._opened.is_set() or self.state == RETRYING:
                    self._ever = True
                    self.state, self.error = RUNNING, ""
                    self._opened.set()
                if frame is not None:
                    self._put(frame._replace(number=offset + frame.number))
                    # Otherwise this name would hold its slot of the decoder's memory while the next frame is awaited.
                    del frame
        except Ended as ended:
            self._note(decoder, earlier)
            # The traceback holds this function's frame, and so the decoder's memory, until cycles are collected.
            return ended.with_traceback(None)
        finally:
            self._decoder = None
            decoder.close()

    def _note(self, decoder: DecoderProcess, earlier: int) -> int:
        """Note how far a decoder is. Returns the offset of its frame numbers: those of a live source go on."""
        self.live = self.live or decoder.live
        offset = earlier if self.live else 0
        self.decoded = max(self.decoded, offset + decoder.decoded)
        return offset

    def _limits_left(self) -> VideoLimits:
        """The limits, where a live source that is opened again has only the rest of its time."""
        if not self.limits.stream_seconds:
            return self.limits
        left = self.limits.stream_seconds - (time.monotonic() - self.began)
        return self.limits._replace(stream_seconds=max(left, 0.001))

    def _put(self, frame: VideoFrame) -> None:
        with self._changed:
            # With BLOCK the decoder waits instead, once it has no free slot.
            if len(self._waiting) >= WAITING and self.options.drop == OLDEST:
                self._waiting.popleft()
                self.dropped += 1
            while len(self._waiting) >= WAITING and not self._stopping.is_set():
                self._changed.wait()
            if not self._stopping.is_set():
                self._waiting.append(frame)
                self._changed.notify_all()

    def _feed(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._exhausted:
                    self._changed.wait()
                if not self._waiting:
                    return
                frame = self._waiting.popleft()
                self._changed.notify_all()
            # Without the lock: the user may take its time, and the decoder goes on meanwhile.
            self.deliver(frame)
            # Until the next frame comes, this name would hold a slot of the decoder's memory.
            del frame

    def figures(self) -> Dict[str, Any]:
        return {
            "state": self.state, "error": self.error, "decoded": self.decoded, "dropped": self.dropped,
            "reconnects": self.reconnects,
        }  # fmt: skip
