"""A worker's side of a decoder: starting it, hearing of its frames, and ending it."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import select
import signal
import subprocess
import time
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Set

from panglot_worker.life import loader
from panglot_worker.video import interpreter, memory
from panglot_worker.video.limits import SourceRules, VideoLimits

DECODER = loader.code("panglot_worker.video.decoder")
LENT = memory.SLOTS - 3
"""Frames of a stream that may be in use in shared memory at one time; further frames are copied."""


class VideoSource(NamedTuple):
    """The source of a video: a descriptor of a file, an address, or a camera's path."""

    kind: str
    where: Any
    shown: str
    """Its name in lists and logs."""
    as_written: str = ""
    """The source as a client or a graph wrote it, so that another worker can find it; empty where it cannot."""

    def close(self) -> None:
        if self.kind == "file":
            os.close(self.where)


class Sampling(NamedTuple):
    """Which of the decoded frames are wanted: every n-th, and not more than so many per second of the video."""

    every: int = 1
    fps: float = 0.0


class Ended(Exception):
    """There are no more frames. `kind` is empty at the video's own end; `limit` when a live source had its time."""

    def __init__(self, kind: str, message: str = "", detail: str = "") -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.message = message
        self.detail = detail
        """For the log alone."""


class VideoFrame(NamedTuple):
    """A decoded frame. `array` has height, width and blue, green, red; `seconds` count from the video's beginning."""

    number: int
    seconds: float
    array: Any


class DecoderProcess:
    """The process that decodes one source, opened once. Used by one thread, except for `kill`."""

    def __init__(
        self, source: VideoSource, sampling: Sampling, limits: VideoLimits, rules: SourceRules, first: int = 0
    ) -> None:
        """`first` is the first frame of a file that is wanted; those before it are decoded and not handed over."""
        self.limits = limits
        self.live = source.kind in ("rtsp", "camera")
        self.decoded = 0
        self._size = memory.slot_size(limits.pixels)
        self._lent: Set[int] = set()
        """Slots whose frames are in use in shared memory."""
        self._rest = b""
        self._lines: List[bytes] = []
        self._wait = limits.open
        file = os.memfd_create("panglot-frames", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, memory.length(self._size))
            self._frames = mmap.mmap(file, memory.length(self._size))
            order = {
                "kind": source.kind, "where": source.where, "memory": file, "every": sampling.every,
                "fps": sampling.fps, "limits": limits._asdict(), "url_allow": list(rules.url_allow), "first": first,
            }  # fmt: skip
            passed = [file] + ([source.where] if source.kind == "file" else [])
            folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            self._process = subprocess.Popen(
                [*interpreter.command(limits), "-c", DECODER, folder],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=passed,
            )  # fmt: skip
        finally:
            os.close(file)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Stdin stays open after this: its end tells the decoder that the worker is gone.
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        self._out = self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)

    def next(self) -> Optional[VideoFrame]:
        """The next frame; None for a report that the decoder is alive, or has opened the source. Raises Ended."""
        message = self._message()
        self._wait = self.limits.stall
        self.live = bool(message.get("live", self.live))
        self.decoded = int(message.get("decoded", message.get("tick", self.decoded)))
        if "error" in message:
            raise Ended(str(message["error"]), str(message["message"]), str(message.get("detail", "")))
        if "end" in message:
            raise Ended(str(message["end"]))
        if "frame" not in message:
            return None
        return VideoFrame(int(message["frame"]), float(message["seconds"]), self._array(message))

    def _message(self) -> Dict[str, Any]:
        deadline = time.monotonic() + self._wait
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                what = "not opened" if self._wait == self.limits.open and not self.decoded else "nothing came"
                raise Ended("stalled", "%s for %g s" % (what, self._wait))
            data = os.read(self._out, 65536)
            if not data:
                raise Ended("crashed", "the decoder ended: %s" % self._cause())
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        message: Dict[str, Any] = json.loads(self._lines.pop(0))
        return message

    def _cause(self) -> str:
        try:
            # Its output may close a moment before the process can be waited for.
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return "its output closed"
        return signal.Signals(-code).name if code < 0 else "exit code %d" % code

    def _array(self, message: Dict[str, Any]) -> Any:
        """The frame as an array. Its slot is marked free when nothing refers to the array any more."""
        import numpy

        slot, shape = int(message["slot"]), (int(message["height"]), int(message["width"]), 3)
        start, count = memory.start_of(slot, self._size), shape[0] * shape[1] * 3
        whole = (ctypes.c_char * count).from_buffer(self._frames, start)
        frames, lent = self._frames, self._lent
        # A user that keeps many frames must not leave the decoder without a free slot.
        if len(lent) >= LENT:
            array = numpy.frombuffer(whole, numpy.uint8).reshape(shape).copy()
            frames[slot] = memory.FREE
            return array
        lent.add(slot)

        def release() -> None:
            lent.discard(slot)
            frames[slot] = memory.FREE

        # Not at exit: nobody needs a free slot then.
        weakref.finalize(whole, release).atexit = False
        return numpy.frombuffer(whole, numpy.uint8).reshape(shape)

    def kill(self) -> None:
        """End the process at once, from any thread; a thread that waits in `next` gets Ended."""
        self._process.kill()

    def close(self) -> None:
        """End the process and release its memory; frames in use elsewhere stay valid."""
        # Waited for at once: a killed decoder would stay as a zombie until the next one is started.
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        # A frame in use keeps the memory alive; this object need not.
        del self._frames
