"""Taking items through the stages, so that each has its own fate."""

from __future__ import annotations

import time
import traceback
from types import GeneratorType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

from panglot_worker.dialects.base import Answer, Dialect, Interrupting, Parts, Problem, Request, Stages
from panglot_worker.errors import SCRIPT_ERROR, EncodeError, described
from panglot_worker.items.intake import LONG, Intake
from panglot_worker.items.replying import cancelled, durations, failed, finished, microseconds
from panglot_worker.items.results import one_each
from panglot_worker.items.sickness import Sickness
from panglot_worker.items.splitting import one_by_one
from panglot_worker.items.unsendable import explained, is_of_json
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import script_traceback

POLL_EVERY = 0.001
Prepared = Tuple[Request, Any, int, int]
"""An item that is ready for the script: its value, and the microseconds of its decoding and preprocessing."""
now = time.perf_counter


class Runner:
    """Runs the frames of one worker whose dialect takes one batch at a time."""

    def __init__(
        self, dialect: Dialect, stages: Stages, port: Port, rerun: bool = True, intake: Optional[Intake] = None
    ) -> None:
        self.dialect = dialect
        self.decode, self.infer, self.encode, self.preprocess, self.postprocess, self.infer_batch = stages[:6]
        if "decode" in stages.script_code:
            self.decode = knowing_request(self.decode)
        self._decode_is_ours = "decode" not in stages.script_code
        self.port = port
        self.rerun = rerun
        self.broken = ""
        """Why this process must not go on."""
        self.sickness = Sickness(port, int(dialect.package.settings.get("sick_after", 0)))
        self._polled = now()
        pool = dialect.package.pool
        self.streams = dialect.streams and (not pool or bool(pool["last"]))
        self._intake = intake if intake is not None and intake.useful else None
        self._takes_in = False
        self._seconds = 0.0
        """How long the last batch took the script."""

    def run(self, requests: List[Request], flags: int) -> None:
        """Run the items of one frame: as a batch, where the script takes batches and the front does not say SINGLY."""
        if len(requests) > 1 and self.infer_batch is not None and not flags & wire.SINGLY:
            ahead = bool(flags & wire.AHEAD)
            # The last batch foretells this one: for a short call, changing threads costs more than it saves.
            self._takes_in = ahead and self._seconds > LONG
            # A batch that was sent ahead has waited in the socket, long enough for clients to leave.
            if ahead:
                requests = self._wanted(requests)
            self.run_batch(requests, self.infer_batch)
            return
        for request in requests:
            if self.broken:
                # The front gives all items without a reply to the next process.
                return
            if self._is_cancelled(request.id):
                # Drop the view, so that the buffer goes back to the front with this very reply.
                request.body = b""
                self.port.reply(cancelled(request.id))
            else:
                self.run_one(request)
                if request.location:
                    request.release()

    def _wanted(self, requests: List[Request]) -> List[Request]:
        """A batch that has waited here, without the items that the front has cancelled."""
        self.port.poll()
        cancelled_ids = self.port.cancelled
        gone = cancelled_ids.intersection(request.id for request in requests) if cancelled_ids else ()
        if not gone:
            return requests
        # Only these: other ids may belong to frames that still wait.
        self.port.cancelled -= gone
        for request in requests:
            if request.id in gone:
                request.body = b""
        self.port.reply(*map(cancelled, gone))
        return [request for request in requests if request.id not in gone]

    def _is_cancelled(self, item_id: int) -> bool:
        started = now()
        # A poll is a system call: one for each item would slow down quick scripts.
        if started - self._polled > POLL_EVERY:
            self._polled = started
            self.port.poll()
        if self.port.cancelled and item_id in self.port.cancelled:
            self.port.cancelled.discard(item_id)
            return True
        return False

    # One item

    def run_one(self, request: Request) -> None:
        """Take one item through the stages and send its reply, whatever the script raises."""
        current.running[:] = (request,)
        marks = [now()]
        stage = "decode"
        try:
            value = self.decode(request)
            marks.append(now())
            if self.preprocess is None:
                marks.append(marks[1])
            else:
                stage = "preprocess"
                value = self.preprocess(value)
                marks.append(now())
            stage = "inference"
            output = self.infer(value)
            if isinstance(output, GeneratorType) and self.streams:
                self._stream(request, output, marks)
                return
            marks.append(now())
            if self.postprocess is None:
                marks.append(marks[3])
            else:
                stage = "postprocess"
                output = self.postprocess(output)
                marks.append(now())
            stage = "encode"
            answer = self.encode(output, request)
            marks.append(now())
        # SystemExit and KeyboardInterrupt of a script too: the client gets an answer before this process ends.
        except BaseException as error:
            marks.append(now())
            self.port.reply(self.failed_reply(request, error, stage, durations(marks)))
            return
        self.sickness.alike = 0
        if request.location:
            # The last references to the body must go before the reply, which tells the front the free buffers.
            value = output = None
            request.release()
        self.port.reply(finished(request.id, answer, durations(marks), request.rows))

    # A batch

    def run_batch(self, requests: List[Request], infer_batch: Callable[[List[Any]], Sequence[Any]]) -> None:
        """Answer all items of a batch: in one frame, unless the call fails and is repeated item by item."""
        replies = self._replies(requests, infer_batch)
        for request in requests:
            if request.location:
                request.release()
        if replies:
            self.port.reply(*replies)

    def _replies(self, requests: List[Request], infer_batch: Callable[[List[Any]], Sequence[Any]]) -> List[wire.Reply]:
        """Decode each item, call the script once, encode each result. Returns the replies that have not been sent."""
        replies: List[wire.Reply] = []
        ready: List[Prepared] = []
        for request in requests:
            # A short cut for a value that the intake has decoded: nothing here can raise.
            if request.decoded is not None and self.preprocess is None:
                (value, took), request.decoded = request.decoded, None
                ready.append((request, value, microseconds(took), 0))
                continue
            prepared = self._prepare(request)
            if isinstance(prepared, wire.Reply):
                replies.append(prepared)
            else:
                ready.append(prepared)
        if ready:
            started = now()
            current.running[:] = [request for request, _, _, _ in ready]
            try:
                values = [value for _, value, _, _ in ready]
                outputs: Sequence[Any] = one_each(self._called(infer_batch, values), len(values))
            except BaseException as error:
                for reply in self._one_by_one(ready, error, started):
                    # Sent at once: the answer must not be lost if the next item kills this process.
                    self.port.reply(reply)
                # The frames hold the values of the whole batch, and with them buffers that the front waits for.
                traceback.clear_frames(error.__traceback__)
                error.__traceback__ = None
            else:
                self._seconds = now() - started
                replies += self._concluded(ready, outputs, microseconds(self._seconds))
        return replies

    def _called(self, infer_batch: Callable[[List[Any]], Sequence[Any]], values: List[Any]) -> Sequence[Any]:
        """The script's results for a batch. Meanwhile the next batch is taken in, where one is likely to come."""
        if self._intake is None or not self._takes_in:
            return infer_batch(values)
        with self._intake:
            return infer_batch(values)

    def _prepare(self, request: Request) -> Union[wire.Reply, Prepared]:
        started = decoded = now()
        stage = "decode"
        try:
            if request.decoded is None:
                value = self.decode(request)
                decoded = now()
            else:
                value, took = request.decoded
                # The intake has decoded it earlier: its time counts as if it had been spent just now.
                started, request.decoded = decoded - took, None
            if self.preprocess is None:
                return (request, value, microseconds(decoded - started), 0)
            stage = "preprocess"
            current.running[:] = (request,)
            value = self.preprocess(value)
        except BaseException as error:
            marks = [started, now()] if stage == "decode" else [started, decoded, now()]
            return self.failed_reply(request, error, stage, durations(marks))
        return (request, value, microseconds(decoded - started), microseconds(now() - decoded))

    def _one_by_one(self, ready: List[Prepared], error: BaseException, started: float) -> Iterator[wire.Reply]:
        """The replies of a batch that failed as one: each item runs alone, unless nothing can succeed here any more."""
        interrupter = self.dialect.interrupter
        interrupted = interrupter is not None and interrupter.has_ended(ready[0][0].id)
        if not interrupted:
            # Also where every item succeeds alone: a MemoryError of the batch still ends this process.
            self._note_broken(error)
        alone = len(ready) == 1
        # Nobody waits for any item of a batch that was interrupted.
        if alone or interrupted or not self.rerun:
            took = microseconds(now() - started)
            for request, _, decode, preprocess in ready:
                yield self.failed_reply(request, error, "inference", (decode, preprocess, took, 0, 0))
            return
        # Without a reply: as after a death, the front decides whether the items run again.
        if self._note_sick(error):
            return
        items = [(request, value) for request, value, _, _ in ready]
        outcomes = one_by_one(self.infer, items, error, self.port)
        for (request, _, decode, preprocess), outcome in zip(ready, outcomes):
            took = microseconds(outcome.seconds)
            if outcome.error is None:
                yield self._conclude(request, outcome.output, (decode, preprocess, took))
            else:
                yield self.failed_reply(request, outcome.error, "inference", (decode, preprocess, took, 0, 0))
                # A cycle: its frames lead back to this one, which holds it and the values of the whole batch.
                outcome.error.__traceback__ = None
                # The rest has no reply, for the same reason.
                if self.sickness.certain:
                    return
        # `one_by_one` reports the failures to the front at its end, which comes only when it is asked once more.
        next(outcomes, None)

    def _concluded(self, ready: List[Prepared], outputs: Sequence[Any], took: int) -> List[wire.Reply]:
        """The replies of a batch. The time to encode it is measured once and shared out: reading a clock costs time."""
        if self.postprocess is not None:
            each = zip(ready, outputs)
            return [self._conclude(of[0], output, (of[2], of[3], took)) for of, output in each]
        started = now()
        fates: List[Union[wire.Reply, Answer]] = []
        for (request, _, decode, preprocess), output in zip(ready, outputs):
            try:
                fates.append(self.encode(output, request))
                self.sickness.alike = 0
            except BaseException as error:
                fates.append(self.failed_reply(request, error, "encode", (decode, preprocess, took, 0, 0)))
        share = microseconds((now() - started) / len(ready))
        return [
            fate
            if isinstance(fate, wire.Reply)
            else finished(of[0].id, fate, (of[2], of[3], took, 0, share), of[0].rows)
            for of, fate in zip(ready, fates)
        ]

    def _conclude(self, request: Request, output: Any, so_far: Tuple[int, int, int]) -> wire.Reply:
        started = now()
        post = 0
        stage = "postprocess"
        try:
            if self.postprocess is not None:
                current.running[:] = (request,)
                output = self.postprocess(output)
                post = microseconds(now() - started)
            stage = "encode"
            answer = self.encode(output, request)
        except BaseException as error:
            return self.failed_reply(request, error, stage, (*so_far, post, microseconds(now() - started) - post))
        self.sickness.alike = 0
        times = (*so_far, post, microseconds(now() - started) - post)
        return finished(request.id, answer, times, request.rows)

    # Streams

    def _stream(self, request: Request, parts: Iterator[Any], marks: List[float]) -> None:
        """Send the parts that a generator yields, until it ends or fails, or nobody listens any more."""
        writing = self.parts_of(request)
        encode_part, head = writing.encode, writing.content_type.encode("latin-1")
        sent = 0
        try:
            for part in parts:
                part = part if self.postprocess is None else self.postprocess(part)
                body = encode_part(part)
                times = durations([*marks, now()]) if not sent else wire.NO_TIMES
                self.port.reply(wire.Reply(request.id, 200, wire.MORE, times, head, body))
                sent += 1
                # Between two parts, because the script holds the thread until it yields.
                self.port.poll()
                if request.id in self.port.cancelled:
                    self.port.cancelled.discard(request.id)
                    # Now, not when the generator is collected: its `finally` may release what the next call needs.
                    close = getattr(parts, "close", None)
                    if close is not None:
                        close()
                    break
        except BaseException as error:
            self.port.reply(self.failed_reply(request, error, "inference", durations([*marks, now()])))
            return
        self.sickness.alike = 0
        self.port.reply(wire.Reply(request.id, 200, 0, durations([*marks, now()]), head, writing.end()))

    def parts_of(self, request: Request) -> Parts:
        """How an answer in parts is written. Raises ClientError where there may be none."""
        return encoding_of_parts(self.dialect, request)

    # Ending

    def end(self, why: str) -> None:
        """Have this process end once the call in progress has its answer."""
        self.broken = why

    def resize(self, slots: int) -> None:
        """Do nothing: one batch at a time is all there is here."""

    # Failures

    def failed_reply(self, request: Request, error: BaseException, stage: str, times: wire.Times) -> wire.Reply:
        """The reply to an item whose stage raised; notes whether this process can go on after it."""
        interrupter = self.dialect.interrupter
        if interrupter is not None and interrupter.has_ended(request.id):
            return self._interrupted_reply(interrupter, request, error, times)
        self._note_broken(error)
        problem, text = self._worded(error, stage, request)
        # A body that our own decoder refuses says nothing about the health of the script.
        if text and not (stage == "decode" and self._decode_is_ours):
            self._note_sick(error)
        # A script's frames would keep the item's data until cycles are collected.
        traceback.clear_frames(error.__traceback__)
        if isinstance(problem, Answer):
            if text:
                event = {"type": "failure", "item": request.id, "message": described(error), "traceback": text}
                self.port.tell(wire.EVENT, event)
            return finished(request.id, problem, times)
        return failed(request.id, problem, text, times)

    def _interrupted_reply(
        self, interrupter: Interrupting, request: Request, error: BaseException, times: wire.Times
    ) -> wire.Reply:
        """The reply to an item whose call was interrupted, whatever the script has raised after that."""
        interrupter.forget(request.id)
        self.dialect.cancelled(request)
        if not isinstance(error, type(self.dialect.interruption())):
            # For example SystemExit, from a script that ends its process on every error.
            self._note_broken(error)
        if interrupter.left_processes():
            self.dialect.replace_worker("a call that was interrupted has left processes behind")
        traceback.clear_frames(error.__traceback__)
        return cancelled(request.id)._replace(times=times)

    def _worded(self, error: BaseException, stage: str, request: Request) -> Tuple[Union[Answer, Problem], str]:
        """The dialect's answer to an exception, and the text for the log; 500 where making the answer raises too."""
        try:
            answer = self.dialect.failure(error, stage, request)
            if request.has_tensors and self.dialect.tensor_adapter is not None:
                answer = self.dialect.tensor_adapter.failure(error, answer, request)
            return answer, "" if self.dialect.blames_client(error, answer) else self._told(error, stage, request)
        # A dialect's `failure` may run code of the script, which raises anything.
        except BaseException as unworded:
            return Problem(500, "script_error", SCRIPT_ERROR), script_traceback(unworded)

    def _told(self, error: BaseException, stage: str, request: Request) -> str:
        """The text for the log about an exception: where the script raised it, or why its result cannot be sent."""
        line = ""
        if isinstance(error, EncodeError) or (stage == "encode" and is_of_json(error)):
            line = explained(error, self.dialect.result_function(request), self.dialect.package.folder)
        return line or script_traceback(error)

    def _note_broken(self, error: BaseException) -> None:
        # The state of the script is unknown then, and a wrong answer is worse than a new process.
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            self.broken = "the script raised %s" % described(error)

    def _note_sick(self, error: BaseException) -> bool:
        # Once it is certain, further failures follow from it, and must not be reported one by one.
        if not self.sickness.certain:
            self.broken = self.sickness.noted(error) or self.broken
        return self.sickness.certain


def encoding_of_parts(dialect: Dialect, request: Request) -> Parts:
    """How an answer in parts is written. Raises ClientError where there may be none."""
    if request.has_tensors and dialect.tensor_adapter is not None:
        return dialect.tensor_adapter.parts(request)
    content_type = dialect.stream_type(request)
    return Parts(content_type, lambda part: dialect.encode_part(part, content_type))


def knowing_request(decode: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """A `decode` with code of the script in it, which may call `panglot.request()`."""

    def decode_with_request(request: Request) -> Any:
        current.running[:] = (request,)
        return decode(request)

    return decode_with_request
