"""Clients that follow a stream while it runs: its results, as events or lines, or its pictures, one by one."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type, Union

from panglot_worker.dialects.megflow.video.streams import Stream, encoded
from panglot_worker.items.replying import cancelled
from panglot_worker.line import wire
from panglot_worker.video.history import Result
from panglot_worker.video.playback import RETRYING, RUNNING

PICTURES = b"multipart/x-mixed-replace; boundary=frame"
BEAT = 2.0
"""Seconds after which something is sent, so that both ends know of each other."""
PICTURE_EVERY = 0.1


class EventFormat:
    """Server-sent events."""

    kind = b"text/event-stream"
    beat = b":\n\n"

    @staticmethod
    def begin(stream: Stream) -> bytes:
        return b": stream %d\n\n" % stream.number

    @staticmethod
    def result(result: Result) -> bytes:
        name = b"event: %s\n" % result.event.encode() if result.event else b""
        return b"%sid: %d\ndata: %s\n\n" % (name, result.number, as_json(result))

    @staticmethod
    def named(name: str, value: Dict[str, Any]) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(value).encode())


class LineFormat:
    """Lines of JSON. What is no result has one key, which says what it is."""

    kind = b"application/x-ndjson"
    beat = b""

    @staticmethod
    def begin(stream: Stream) -> bytes:
        return b""

    @staticmethod
    def result(result: Result) -> bytes:
        return as_json(result) + b"\n"

    @staticmethod
    def named(name: str, value: Dict[str, Any]) -> bytes:
        return json.dumps({name: value}).encode() + b"\n"


Format = Union[Type[EventFormat], Type[LineFormat]]


class Subscriber(NamedTuple):
    """A client that gets the results of a stream."""

    stream: Stream
    format: Format
    owns: bool
    """Whether the stream is for this client alone, and ends when the client disconnects."""


class Subscribers:
    """The subscribers of one server node, by the item of their request. Every method may be called from any thread."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self._lock = threading.Lock()
        self._subscribers: Dict[int, Subscriber] = {}
        self._states: Dict[int, str] = {}
        self._beaten = 0.0

    # Results

    def listen(
        self, stream: Stream, item: int, after: Optional[int], form: Format = EventFormat, owns: bool = False
    ) -> None:
        """Send every result of the stream, until the stream ends or the client leaves."""
        self._send(item, form.begin(stream), form.kind)
        with self._lock:
            self._subscribers[item] = Subscriber(stream, form, owns)
        stream.results.listen(
            item,
            after,
            lambda result: self._send(item, form.result(result), form.kind),
            lambda lost: self._send(item, form.named("dropped", {"results": lost}), form.kind),
        )
        # The stream may have ended before the subscriber was noted, and its own `over` did not find it.
        if stream.over.is_set():
            self.over(stream)

    def over(self, stream: Stream) -> None:
        """Tell all subscribers of a stream that it has ended, and how."""
        self._tell_lost(stream)
        for item, _ in self._of(stream):
            self._finish(item)

    def _of(self, stream: Stream) -> List[Tuple[int, Subscriber]]:
        with self._lock:
            return [(item, subscriber) for item, subscriber in self._subscribers.items() if subscriber.stream is stream]

    def _tell(self, stream: Stream, name: str, value: Dict[str, Any]) -> None:
        for item, subscriber in self._of(stream):
            self._send(item, subscriber.format.named(name, value), subscriber.format.kind)

    def _tell_lost(self, stream: Stream) -> None:
        """Tell of the frames that got no answer. They stay stored while there are no subscribers."""
        for lost in stream.frames_in_graph.take_lost() if self._of(stream) else ():
            self._tell(stream, "lost", lost._asdict())

    def release(self, stream: Stream) -> None:
        """Disconnect the subscribers of a stream without an end event: another worker goes on with it."""
        for item, _ in self._of(stream):
            self._finish(item, at_end=False)

    def _finish(self, item: int, at_end: bool = True) -> None:
        with self._lock:
            subscriber = self._subscribers.pop(item, None)
        # Another thread has finished it: the stream, and a request that finds it over, both come here.
        if subscriber is None:
            return
        stream, form, _ = subscriber
        stream.results.forget(item)
        if at_end:
            self._send(item, form.named("end", state_of(stream)), form.kind)
        self.gateway.reply(item, wire.Reply(item, 200, 0, wire.NO_TIMES, form.kind, b""))

    def tick(self, streams: Iterable[Stream]) -> None:
        """Tell of streams that changed their state, show signs of life, forget clients that left. Called regularly."""
        states: Dict[int, str] = {}
        for stream in streams:
            stream.keep()
            self._tell_lost(stream)
            state = stream.playback.state
            if state in (RUNNING, RETRYING):
                if self._states.get(stream.number, RUNNING) != state:
                    self._tell(stream, "state", state_of(stream))
                states[stream.number] = state
        self._states = states
        beats = time.monotonic() - self._beaten > BEAT
        if beats:
            self._beaten = time.monotonic()
        with self._lock:
            subscribers = list(self._subscribers.items())
        for item, subscriber in subscribers:
            if self.gateway.is_unwanted(item):
                self._leave(item, subscriber)
            elif beats:
                self._send(item, subscriber.format.beat, subscriber.format.kind)

    def _leave(self, item: int, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers.pop(item, None)
        subscriber.stream.results.forget(item)
        if subscriber.owns:
            subscriber.stream.stop()
        self.gateway.reply(item, cancelled(item))

    def _send(self, item: int, data: bytes, kind: bytes) -> None:
        self.gateway.part(item, wire.Reply(item, 200, wire.MORE, wire.NO_TIMES, kind, data))

    # Pictures

    def watch(self, stream: Stream, item: int) -> None:
        """Send pictures of the stream, until the stream ends or the client leaves."""
        threading.Thread(target=self._show, args=(stream, item), name="preview", daemon=True).start()

    def _show(self, stream: Stream, item: int) -> None:
        shown: Any = None
        beaten = 0.0
        while not self.gateway.is_unwanted(item):
            picture = stream.picture()
            if picture is not None and (picture is not shown or time.monotonic() - beaten > BEAT):
                shown, beaten = picture, time.monotonic()
                try:
                    data = encoded(picture)
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
        end = cancelled(item) if self.gateway.is_unwanted(item) else wire.Reply(
            item, 200, 0, wire.NO_TIMES, PICTURES, b"--frame--\r\n")  # fmt: skip
        self.gateway.reply(item, end)


def state_of(stream: Stream) -> Dict[str, Any]:
    """The event for a subscriber when a stream changes its state, or ends."""
    about = stream.about()
    return {key: about[key] for key in ("state", "error", "decoded", "analysed", "lost", "dropped", "reconnects")}


def as_json(result: Result) -> bytes:
    if result.event:
        return result.message.encode()
    return json.dumps({"frame": result.frame, "seconds": result.seconds, "message": result.message}).encode()
