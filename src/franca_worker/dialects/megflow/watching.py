"""Clients that are told of a stream while it runs: server-sent events, and pictures one after the other."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, Iterable, Optional, Tuple

from franca_worker import wire
from franca_worker.dialects.megflow import images
from franca_worker.dialects.megflow.streams import Stream
from franca_worker.running import cancelled
from franca_worker.video.results import Result

EVENTS = b"text/event-stream"
PICTURES = b"multipart/x-mixed-replace; boundary=frame"
BEAT = 2.0
"""Seconds after which something is sent, so that both ends know of each other."""
PICTURE_EVERY = 0.1


class Watching:
    """Of one server node. Everything may be called from any thread."""

    def __init__(self, doors: Any) -> None:
        self.doors = doors
        self._lock = threading.Lock()
        self._listeners: Dict[int, Stream] = {}
        self._states: Dict[int, Tuple[str, str]] = {}
        self._beaten = 0.0

    # Events

    def listen(self, stream: Stream, item: int, after: Optional[int]) -> None:
        """Send every result of the stream as an event, until that or its client ends."""
        self._send(item, b": stream %d\n\n" % stream.number)
        with self._lock:
            self._listeners[item] = stream
        stream.results.listen(
            item,
            after,
            lambda result: self._send(item, event(result)),
            lambda lost: self._send(item, named("dropped", {"results": lost})),
        )
        if stream.over.is_set():
            self._finish(item, stream)

    def over(self, stream: Stream) -> None:
        for item in [item for item, one in list(self._listeners.items()) if one is stream]:
            self._finish(item, stream)
        self._states.pop(stream.number, None)

    def _finish(self, item: int, stream: Stream) -> None:
        with self._lock:
            if self._listeners.pop(item, None) is None:
                return
        stream.results.forget(item)
        self._send(item, named("end", state_of(stream)))
        self.doors.reply(item, wire.Reply(item, 200, 0, wire.NO_TIMES, EVENTS, b""))

    def tick(self, streams: Iterable[Stream]) -> None:
        """Now and then: tell of streams that changed their state, and of being alive; forget who has gone."""
        for stream in streams:
            state = (stream.playing.state, stream.playing.error)
            if self._states.get(stream.number, ("running", "")) != state:
                self._tell(stream, named("state", state_of(stream)))
            self._states[stream.number] = state
        beats = time.monotonic() - self._beaten > BEAT
        if beats:
            self._beaten = time.monotonic()
        for item, stream in list(self._listeners.items()):
            if self.doors.is_unwanted(item):
                self._leave(item, stream)
            elif beats:
                self._send(item, b":\n\n")

    def _tell(self, stream: Stream, data: bytes) -> None:
        for item in [item for item, one in list(self._listeners.items()) if one is stream]:
            self._send(item, data)

    def _leave(self, item: int, stream: Stream) -> None:
        with self._lock:
            self._listeners.pop(item, None)
        stream.results.forget(item)
        self.doors.reply(item, cancelled(item))

    def _send(self, item: int, data: bytes, kind: bytes = EVENTS) -> None:
        self.doors.part(item, wire.Reply(item, 200, wire.MORE, wire.NO_TIMES, kind, data))

    # Pictures

    def watch(self, stream: Stream, item: int) -> None:
        """Send pictures of the stream, until that or its client ends."""
        threading.Thread(target=self._show, args=(stream, item), name="preview", daemon=True).start()

    def _show(self, stream: Stream, item: int) -> None:
        shown: Any = None
        beaten = 0.0
        while not self.doors.is_unwanted(item):
            picture = stream.picture()
            if picture is not None and (picture is not shown or time.monotonic() - beaten > BEAT):
                shown, beaten = picture, time.monotonic()
                try:
                    data = images.encode(picture)
                except ValueError:
                    break
                head = b"--frame\r\ncontent-type: image/jpeg\r\ncontent-length: %d\r\n\r\n" % len(data)
                self._send(item, head + data + b"\r\n", PICTURES)
            elif time.monotonic() - beaten > BEAT:
                beaten = time.monotonic()
                self._send(item, b"", PICTURES)
            del picture
            if stream.over.wait(PICTURE_EVERY):
                break
        end = cancelled(item) if self.doors.is_unwanted(item) else wire.Reply(
            item, 200, 0, wire.NO_TIMES, PICTURES, b"--frame--\r\n")  # fmt: skip
        self.doors.reply(item, end)


def state_of(stream: Stream) -> Dict[str, Any]:
    about = stream.about()
    return {key: about[key] for key in ("state", "error", "decoded", "analysed", "dropped", "reconnects")}


def event(result: Result) -> bytes:
    data = {"frame": result.frame, "seconds": result.seconds, "message": result.message}
    return b"id: %d\ndata: %s\n\n" % (result.number, json.dumps(data).encode())


def named(name: str, value: Dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(value).encode())
