"""VideoServer: streams that clients start, each with a subgraph instance of its own."""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
import urllib.parse
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Tuple

from panglot_worker.dialects.base import Answer, Problem, Request
from panglot_worker.dialects.megflow.graph.subscribers import EventFormat, LineFormat, Subscribers
from panglot_worker.dialects.megflow.graph.surviving import Orphan, Survival, as_text
from panglot_worker.dialects.megflow.servers.server_node import Rejected, ServerNode
from panglot_worker.dialects.megflow.video.streams import Stream, encoded
from panglot_worker.items.replying import failed, finished
from panglot_worker.line import wire
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video import sources
from panglot_worker.video.decoder_process import Sampling, VideoSource
from panglot_worker.video.ledger import Progress
from panglot_worker.video.limits import limits_of, rules_for_clients
from panglot_worker.video.playback import BLOCK, FAILED, OLDEST, STOPPED, PlaybackOptions
from panglot_worker.video.sources import shown
from panglot_worker.video.uploads import SHOWN, is_in_body, uploaded

TEXT, JSON, JPEG = "text/plain; charset=utf-8", "application/json", "image/jpeg"
LIMITS = {"too_long": 413, "too_large": 413}
"""Statuses of videos that a limit forbids, by the reason; other failures have a status of the route."""
RELEASE = "release"
"""Arrives among requests when the worker is to end."""
GONE = "gone"
"""The kind of a source that cannot be opened again."""
TICK = 0.5
ANSWER_WITHIN = 2.0
"""Seconds a client waits to hear whether its stream could be opened."""
MOST_ENDED = 100
"""The most ended streams that are stored, with their results."""


class VideoServer(ServerNode):
    """Starts and stops streams for clients, and gives them what came out of their subgraphs."""

    def __init__(self, name: str, args: Dict[str, Any]) -> None:
        super().__init__(name, args)
        self._streams: "OrderedDict[int, Stream]" = OrderedDict()
        self._ended: "OrderedDict[int, Stream]" = OrderedDict()
        self._stopped: "OrderedDict[int, Stream]" = OrderedDict()
        self._warned = False
        self._due = 0.0
        self._lock = threading.Lock()

    def panglot_attach(self, thread: Any) -> None:
        """Read the settings, then as for every server node. Raises ValueError for arguments that make no sense."""
        options_of(self.args, {})
        self.settings = thread.runtime.settings
        self.limits, self.rules = limits_of(self.settings), rules_for_clients(self.settings)
        super().panglot_attach(thread)
        self.subscribers = Subscribers(self.gateway)
        self.survival = Survival(self.gateway.ledger, self.path)

    # From the front

    def close(self) -> None:
        """Leave the streams to the worker that comes next, and let `exec` end."""
        self.survival.leave()
        super().close()

    def take_over(self) -> None:
        """Go on with the streams of the worker before this one, which has released them."""
        self.survival.my_turn.set()

    def release(self) -> None:
        """Leave the streams to another worker, once the streams requested before have begun."""
        if not self.survival.my_turn.is_set():
            self.survival.leave()
        self._arrivals.put(RELEASE)

    def exec(self) -> None:
        """Answer until closed, then stop all streams. What takes long, such as opening, happens in other threads."""
        # Until the worker before this one has released its streams, both would play them.
        self.survival.my_turn.wait()
        self._adopt()
        self._due = time.monotonic() + TICK
        super().exec()
        for stream in self._running():
            stream.stop()

    def _arrival(self) -> Optional[Request]:
        while True:
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + TICK
                self.subscribers.tick(self._running())
            try:
                arrival = self._arrivals.get(timeout=max(0.0, self._due - time.monotonic()))
            except queue.Empty:
                continue
            if arrival is None or isinstance(arrival, Request):
                return arrival
            self._leave_streams()

    def _running(self) -> List[Stream]:
        with self._lock:
            return list(self._streams.values())

    def take(self, request: Request) -> None:
        """Do what the first word of the path says. Raises Rejected."""
        if request.has_tensors:
            raise Rejected(400, "bad_request", "request streams of video on their own routes, not with tensors")
        _, word, *rest = request.head.path.decode("utf-8", "replace").split("/")
        ways: Dict[str, Callable[[Request, str], Optional[Answer]]] = {
            "start": self._start, "stop": self._stop, "list": self._list, "get_msgs": self._messages,
            "events": self._events, "preview": self._preview,
            "analyze_video": self._analyze,
        }  # fmt: skip
        answer = ways[word](request, rest[0] if rest else "")
        if answer is not None:
            self.gateway.reply(request.id, finished(request.id, answer, wire.NO_TIMES))

    def unexpected(self, error: Exception) -> Tuple[Problem, str]:
        """An error of the server itself, with its whole traceback."""
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return Problem(500, "script_error", "the request failed; the server's log says why"), text

    # Starting and stopping

    def _start(self, request: Request, segment: str) -> None:
        options = self._options(request)
        try:
            source = sources.find(urllib.parse.unquote(segment), self.rules)
        except AddressRefused as error:
            raise Rejected(400, "refused", "the video is not opened: %s" % error) from None
        stream = self._begin(source, options)
        threading.Thread(target=self._say_started, args=(request, stream), daemon=True).start()

    def _options(self, request: Request) -> PlaybackOptions:
        """The stream that a client requests, unless there are too many streams. Raises Rejected."""
        running = len(self._running())
        if running >= self.limits.streams:
            raise Rejected(503, "too_many_streams", "%d streams run already; stop one first" % running)
        try:
            return options_of(self.args, dict(urllib.parse.parse_qsl(request.head.query.decode("latin-1"))))
        except ValueError as error:
            raise Rejected(400, "bad_request", str(error)) from None

    def _begin(self, source: VideoSource, options: PlaybackOptions) -> Stream:
        """Start a stream. Raises Rejected when its subgraph cannot be made."""
        stream = Stream(Progress(self.survival.number()), source, options, self.limits, self.rules, self._bad)
        try:
            self._play(stream)
        except Exception as error:
            message = "the subgraph of a stream cannot be made: %s: %s" % (type(error).__name__, error)
            self._warn(message)
            raise Rejected(500, "script_error", message) from None
        return stream

    def _play(self, stream: Stream) -> None:
        """Start a stream, and list it. Raises what the construction of nodes raises."""
        stream.start((self.out[0], self.out[1], self.inp[1]), self._over)
        with self._lock:
            # A short video is over by now: `_over` has been here before, and would not take it off again.
            if not stream.over.is_set():
                self._streams[stream.number] = stream

    def _say_started(self, request: Request, stream: Stream) -> None:
        stream.playback.wait_opened(ANSWER_WITHIN)
        if stream.playback.state == FAILED:
            self._say_failed(request, stream, LIMITS.get(stream.playback.reason, 500))
            return
        # Not before: a request that has no answer yet is made again when the worker dies.
        self.survival.note(stream)
        answer = Answer(TEXT, b"start stream whose id is %d" % stream.number)
        self.gateway.reply(request.id, finished(request.id, answer, wire.NO_TIMES))

    def _say_failed(self, request: Request, stream: Stream, status: int) -> None:
        problem = Problem(status, "not_opened", "the video cannot be opened: %s" % stream.playback.error)
        self.gateway.reply(request.id, failed(request.id, problem, "", wire.NO_TIMES))

    def _analyze(self, request: Request, rest: str) -> None:
        """Analyse the video in a request's body; its results are the answer."""
        options = self._options(request)
        stream = self._begin(uploaded(request.body, is_in_body(request.head, self.settings)), options)
        request.body = b""
        threading.Thread(target=self._say_results, args=(request, stream), daemon=True).start()

    def _say_results(self, request: Request, stream: Stream) -> None:
        stream.playback.wait_opened(self.limits.open + 1)
        if stream.playback.state == FAILED and not stream.results.count:
            self._say_failed(request, stream, LIMITS.get(stream.playback.reason, 422))
            return
        lines = b"application/x-ndjson" in request.head.accept
        self.subscribers.listen(stream, request.id, None, LineFormat if lines else EventFormat, owns=True)

    def _stop(self, request: Request, word: str) -> Answer:
        stream = self._find(word, listed=True)
        self.survival.forget(stream)
        with self._lock:
            self._ended.pop(stream.number, None)
            keep(self._stopped, stream)
        stream.stop()
        return Answer(TEXT, b"stop stream %d success" % stream.number)

    def _over(self, stream: Stream) -> None:
        """Note that a stream has ended; called in its own thread."""
        self.survival.forget(stream)
        with self._lock:
            self._streams.pop(stream.number, None)
            if stream.number not in self._stopped and stream.playback.source.shown != SHOWN:
                keep(self._ended, stream)
        self.subscribers.over(stream)
        playback, complaint = stream.playback, stream.frames_in_graph.complaint()
        which = "stream %d (%s)" % (stream.number, playback.source.shown)
        if playback.state == FAILED:
            detail = " (%s)" % playback.detail if playback.detail else ""
            self._warn("%s failed: %s%s" % (which, playback.error, detail))
        if complaint and playback.state != STOPPED:
            self._warn("%s: %s" % (which, complaint))

    def _warn(self, message: str) -> None:
        self.gateway.port.tell(wire.EVENT, {"type": "warning", "message": message})

    def _find(self, word: str, listed: bool = False) -> Stream:
        if word.isascii() and word.isdigit() and len(word) < 16:
            number = int(word)
            with self._lock:
                lists = [self._streams, self._ended] + ([] if listed else [self._stopped])
                for streams in lists:
                    if number in streams and not (listed and number in self._stopped):
                        return streams[number]
        raise Rejected(404, "not_found", "there is no stream %s" % word)

    # From one worker to the next

    def _adopt(self) -> None:
        """Go on with the streams that a worker before this one played."""
        for orphan in self.survival.orphans():
            try:
                self._go_on(orphan)
            except Exception as error:
                orphan.entry.free()
                self._warn("stream %d (%s) cannot go on: %s" % (orphan.before.number, shown(orphan.url), error))

    def _go_on(self, orphan: Orphan) -> None:
        """Go on with a stream of another worker where it stopped. Raises what the construction of nodes raises."""
        before, problem = orphan.before, ""
        try:
            source = sources.find(orphan.url, self.rules)
        except AddressRefused as error:
            source, problem = VideoSource(GONE, "", shown(orphan.url)), str(error)
        if before.deaths > self.limits.retries:
            problem = "%d workers in a row died without one frame analysed" % before.deaths
        stream = Stream(before, source, orphan.options, self.limits, self.rules, self._bad)
        stream.results.mark("gap", as_text(orphan.gap))
        stream.keep_in(orphan.entry)
        # At once, with the death counted: the construction of the subgraph may kill this worker too.
        stream.keep()
        if problem:
            stream.fail(problem)
            self._over(stream)
            return
        self._play(stream)
        words = (before.number, stream.playback.source.shown, before.first, orphan.gap["reason"])
        self._warn("stream %d (%s) goes on at frame %d: %s" % words)

    def _leave_streams(self) -> None:
        """Leave all streams to another worker, except streams of uploads, which live as long as their request."""
        streams = [stream for stream in self._running() if stream.playback.source.as_written]
        # All of them before `leave`, after which none is noted.
        for stream in streams:
            self.survival.note(stream)
        self.survival.leave()
        for stream in streams:
            if stream.is_noted:
                stream.release()
                self.subscribers.release(stream)
            stream.stop()
        self.gateway.has_released(self)

    # Requests about streams

    def _list(self, request: Request, rest: str) -> Answer:
        with self._lock:
            known = (*self._ended.values(), *self._streams.values())
            listed = [stream for stream in known if stream.number not in self._stopped]
        return Answer(JSON, json.dumps([stream.about() for stream in listed]).encode())

    def _messages(self, request: Request, word: str) -> Answer:
        return Answer(JSON, json.dumps([result.message for result in self._find(word).results.take()]).encode())

    def _events(self, request: Request, word: str) -> None:
        after = request.head.last_event_id.decode("latin-1")
        number = int(after) if after.isdigit() and len(after) < 16 else None
        self.subscribers.listen(self._find(word), request.id, number)

    def _preview(self, request: Request, word: str) -> Optional[Answer]:
        name, _, kind = word.rpartition(".")
        if kind not in ("jpg", "mjpeg"):
            raise Rejected(404, "not_found", "")
        stream = self._find(name)
        if kind == "mjpeg":
            self.subscribers.watch(stream, request.id)
            return None
        picture = stream.picture()
        if picture is None:
            raise Rejected(404, "not_found", "")
        try:
            return Answer(JPEG, encoded(picture), headers=("cache-control: no-store",))
        except ValueError as error:
            raise Rejected(500, "bad_result", "the image cannot be shown: %s" % error) from None

    def _bad(self, kind: str) -> None:
        if not self._warned:
            self._warned = True
            message = "VideoServer '%s' got a message of type %s and dropped it; send a str: use json.dumps (said once)"
            self._warn(message % (self.path, kind))

    def report(self) -> List[Dict[str, Any]]:
        """Figures of the streams that run, for the front."""
        return [
            {"node": self.path, "lag": round(stream.lag, 3), **stream.rates(), **stream.about()}
            for stream in self._running()
        ]


def keep(streams: "OrderedDict[int, Stream]", stream: Stream) -> None:
    """Remember a stream that is over; the oldest is forgotten where there are too many."""
    streams[stream.number] = stream
    while len(streams) > MOST_ENDED:
        streams.popitem(last=False)


def options_of(args: Dict[str, Any], query: Dict[str, str]) -> PlaybackOptions:
    """The options in a node's arguments, or in the query of a client, which wins. Raises ValueError."""
    given = {key: query.get(key, args.get(key)) for key in ("fps", "every", "drop")}
    unknown = [key for key in query if key not in given]
    if unknown:
        raise ValueError("'%s' is not known; there are fps, every and drop" % unknown[0])
    fps, every, drop = given["fps"] or 0, given["every"] or 1, given["drop"] or BLOCK
    try:
        sampling = Sampling(int(every), float(fps))
    except (TypeError, ValueError):
        raise ValueError("fps must be a number, and every a whole number") from None
    if not (sampling.every >= 1 and 0 <= sampling.fps <= 1000):
        raise ValueError("every is 1 or more, and fps above 0 and at most 1000")
    if drop not in (OLDEST, BLOCK):
        raise ValueError("drop is 'oldest' or 'block', not '%s'" % drop)
    return PlaybackOptions(sampling, str(drop))


NODES: Dict[str, Any] = {"VideoServer": VideoServer}
