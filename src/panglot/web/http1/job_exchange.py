"""A request that becomes a job: its body is stored, and its answer says where the job is."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from panglot.engine.call import Call, Fault
from panglot.jobs.held import WAS_CANCELLED, HeldCall
from panglot.jobs.interface import Jobs
from panglot.jobs.job import Job, JobOutcome, JobTrouble, NewJob, new_id
from panglot.jobs.running import NOT_RUN, JobCall
from panglot.web.access.keys import Wanted
from panglot.web.contract import JOBS, RouteRefused
from panglot.web.http1 import stream_errors
from panglot.web.http1.exchange import Exchange
from panglot.web.http1.heads.request_head import RequestHead
from panglot.web.http1.naming import find_model
from panglot.web.job_contract import FOREVER, JobOptions, JobRequest, JobRoute, JobState, StoredAnswer
from panglot.web.jobs import asking, views
from panglot.web.json_fields import SMALL, read_fields
from panglot.web.paths import Destination
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.http1.connection import HttpConnection

NO_OPTIONS = JobOptions()
TELLING = frozenset({b"prefer", b"idempotency-key", b"job-webhook"})
"""Headers that say how a request becomes a job."""
LONGEST_TIMER = 1e6
"""Seconds of the longest timer: a route may let its clients wait for ever, and the loop takes no infinite time."""
PRIVATE = frozenset({b"authorization", b"cookie", b"proxy-authorization"})
"""Headers that are never stored."""


def preferred_exchange(
    connection: HttpConnection, destination: Destination, began: float, head: RequestHead
) -> Exchange:
    """The exchange of a request whose client or route has preferences. It may become a job if neither says no."""
    route, preference = destination.route, asking.preference(head.prefer)
    always = route.job is not None and route.job.always
    exchange: Exchange
    stores_none = route.spooled and connection.front.jobs is None
    if route.endless or stores_none or not (always or preference.respond_async):
        exchange = Exchange(connection, connection.front, destination, began)
    else:
        exchange = JobExchange(connection, destination, began, head, preference)
    exchange.tells_error = stream_errors.is_wanted(head.prefer)
    return exchange


class JobExchange(Exchange):
    """One request that may become a job. Its client may disconnect: the job goes on, unless it is attached."""

    __slots__ = (
        "_attached", "_held", "_job", "_new", "_options", "_patience", "_preference", "_request_headers", "_timer",
        "_url",
    )  # fmt: skip

    def __init__(
        self,
        connection: HttpConnection,
        destination: Destination,
        began: float,
        head: RequestHead,
        preference: asking.Preference,
    ) -> None:
        super().__init__(connection, connection.front, destination, began)
        self._preference = preference
        self._patience = head.timeout(FOREVER)
        """Seconds after which the client wants an answer, whatever has become of the job by then."""
        self._request_headers = head.headers
        self._url = head.url
        self._options = NO_OPTIONS
        self._job = ""
        self._attached = False
        self._held: HeldCall | None = None
        """The run of a job that is not stored, while this waits for its answer."""
        self._timer: asyncio.TimerHandle | None = None
        """Fires when the client waits no longer; None once it has."""

    @property
    def goes_to_file(self) -> bool:
        # The store of jobs has files of its own. So a video that becomes a job is a body like any other.
        return False

    def begin(self, submit: Callable[[Exchange], None]) -> None:
        """Read the fields of the body that the route's contract names, then store the job, or submit a call."""
        if self.route.model is not None and self.route.fields:
            find_model(self.front, self, lambda fault: self._named(submit, fault))
        else:
            self._named(submit, None)

    def _named(self, submit: Callable[[Exchange], None], fault: Fault | None) -> None:
        if self._is_gone():
            return
        if fault is not None:
            self.fail(fault)
            return
        job = self.route.job
        if job is not None and job.usual is not None and self._is_usual(job):
            self._go_on(submit, job.usual)
            return
        names = job.fields if job is not None else ()
        if not names:
            self._decide(submit, {})
            return
        # Copied once here: the job needs the bytes in any case.
        body, depth = b"".join(self.body()), self.model.settings.max_json_depth
        if len(body) <= SMALL:
            self._decide(submit, read_fields(body, names, depth))
            return
        reading = asyncio.get_running_loop().run_in_executor(None, lambda: read_fields(body, names, depth))
        reading.add_done_callback(lambda done: self._decide(submit, done.result()))

    def _decide(self, submit: Callable[[Exchange], None], fields: Mapping[str, Any]) -> None:
        if self._is_gone():
            return
        try:
            options = self._chosen(fields)
        except RouteRefused as refused:
            self.release()
            self.fail(refused.fault)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()
        else:
            self._go_on(submit, options)

    def _is_usual(self, job: JobRoute) -> bool:
        """Whether nothing in the head or the body can change how the request becomes a job."""
        if self.size > SMALL or b"?" in self._url or any(name in TELLING for name, _ in self._request_headers):
            return False
        return job.is_usual(b"".join(self.body()))

    def _go_on(self, submit: Callable[[Exchange], None], options: JobOptions) -> None:
        """Make the request a job, or a call, as its options say."""
        board = self.front.jobs
        if not options.is_job or board is None:
            submit(self)
            return
        self._options, self._attached = options, options.attached
        try:
            self._check_right(options)
            new = self._new_job()
            if options.is_held:
                self._hold(board, new)
                return
        except RouteRefused as refused:
            self.release()
            self.fail(refused.fault)
            return
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()
            return
        board.submit(new, self._stored, self._patience)

    def _check_right(self, options: JobOptions) -> None:
        """Raise RouteRefused where the key has no right to jobs. A job that ends with its client needs none."""
        if self.holder is not None and options.is_job and not options.attached:
            fault = self.holder.forbids(Wanted(JOBS, self.route.path))
            if fault is not None:
                raise RouteRefused(fault)

    def _is_gone(self) -> bool:
        """Whether the client has disconnected while a thread read the body."""
        return self.connection.transport is None

    def _chosen(self, fields: Mapping[str, Any]) -> JobOptions:
        """How the request becomes a job: as its route's contract says, else by its own headers. Raises RouteRefused."""
        route, preference = self.route.job, self._preference
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(self._request_headers)
            if name not in PRIVATE
        }
        options = JobOptions()
        if route is not None and route.options is not None:
            head = wire.Head.unpack(self.head)
            query = dict(parse_qsl(head.query.decode("latin-1"), keep_blank_values=True))
            method = head.method.decode("ascii")
            options = route.options(
                JobRequest(method, head.path_values, query, headers, fields, preference.respond_async, preference.wait)
            )
        return asking.completed(options, headers, preference, self.front.settings)

    def _new_job(self) -> NewJob:
        options, settings = self._options, self.model.settings
        body = b"".join(self.body())
        head = self.head if options.is_held else _without_private(self.head)
        digest = b"" if options.any_request or options.key is None else self._digest(body)
        return NewJob(
            id=new_id(),
            model=views.model_key(self.model),
            route=self.route.path,
            head=head,
            body=body,
            owner=self.holder.name if self.holder is not None else "",
            key=options.key,
            digest=digest,
            lifetime=options.lifetime if options.lifetime is not None else settings.jobs_lifetime,
            retain=options.retain if options.retain is not None else settings.jobs_keep,
            webhook=options.webhook,
            lane=self.lane,
            own=json.dumps(dict(options.own)) if options.own else "",
            rerun=settings.rerun,
            run_timeout=options.run_timeout,
        )

    def _digest(self, body: bytes) -> bytes:
        head = wire.Head.unpack(self.head)
        digest = hashlib.blake2b(digest_size=16)
        for piece in (head.route, head.path, head.query, head.content_type, head.method, body):
            digest.update(len(piece).to_bytes(8, "big") + piece)
        return digest.digest()

    # Held jobs

    def _hold(self, board: Jobs, new: NewJob) -> None:
        """Run the job as a request, and store it only when the client waits no longer."""
        engine = self.model.engine
        call = HeldCall(
            new, board.held.now(), self.quota, self._fault_answer, self._held_ended, self._held_changed, engine.cancel
        )
        # Before `submit`, which may answer at once. The body is the call's from here on.
        self._held = call
        Call.release(self)
        board.held.add(call)
        wait = min(self._options.wait or 0.0, self._patience)
        self._timer = asyncio.get_running_loop().call_later(min(wait, LONGEST_TIMER), self._waited)
        fault = engine.submit(call)
        if fault is not None:
            self._held_ended(call, fault)

    def _fault_answer(self, route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
        answer = self.model.error_answer(self.route, fault, request_id)
        return answer.status, answer.head, answer.body

    def _held_changed(self, name: str) -> None:
        call, board = self._held, self.front.jobs
        if call is not None and call.progress is not None:
            self.report(call.progress)
        if board is not None:
            board.held.changed(name)

    def _release_held(self) -> None:
        """Release the held job, and its memory."""
        call, self._held, board = self._held, None, self.front.jobs
        if self._timer is not None:
            self._timer.cancel()
        if call is not None and board is not None:
            board.held.remove(call)
            call.release_parts()
        self.release()

    def _held_ended(self, call: JobCall, end: JobOutcome | Fault) -> None:
        """Answer with the end of a job that was never stored."""
        board = self.front.jobs
        assert board is not None
        assert isinstance(call, HeldCall)
        self._release_held()
        if self._is_gone():
            return
        self.queued_us, self.worker, self.trail = call.queued_us, call.worker, call.trail
        if end is WAS_CANCELLED:
            self._ended(JobState(call.cancelled(board.held.now()), board.durable), None)
            return
        if isinstance(end, Fault):
            if end.code in NOT_RUN:
                # The engine cannot take it now: so it waits, as jobs do.
                board.submit(_storable(call.new), self._stored, self._patience)
                return
            end = call.outcome(end)
        job, answer = call.finished(end, board.held.now())
        self._ended(JobState(job, board.durable), answer, call.times)

    def _waited(self) -> None:
        """Have the job stored: its client waits no longer."""
        call, self._timer = self._held, None
        board = self.front.jobs
        if call is not None and board is not None:
            call.new = _storable(call.new)
            board.adopt(call, lambda result: self._adopted(call, result))

    def _adopted(self, call: HeldCall, result: Job | JobTrouble) -> None:
        self._held = None
        self.release()
        if isinstance(result, JobTrouble):
            call.cancel(call)
            call.release_parts()
            if not self._is_gone():
                self.fail(asking.fault(result))
            return
        self._job = result.id
        if self._is_gone():
            self._cancel_attached()
        else:
            self._accepted(JobState(result, self._is_durable()), is_new=True)

    # Answers

    def _stored(self, result: tuple[Any, bool] | JobTrouble) -> None:
        """Answer where the job is, now that it is stored; or wait for its end first."""
        # The store has its own copy of the body.
        self.release()
        if isinstance(result, JobTrouble):
            if not self._is_gone():
                self.fail(asking.fault(result))
            return
        job, is_new = result
        self._job = job.id
        if self._is_gone():
            self._cancel_attached()
            return
        wait = min(self._options.wait or 0.0, self._patience)
        if wait > 0 and self.front.jobs is not None:
            task = asyncio.ensure_future(self._when_ended(job.id, wait, is_new))
            task.add_done_callback(_log_failure)
        else:
            self._accepted(JobState(job, self._is_durable()), is_new)

    def _is_durable(self) -> bool:
        return self.front.jobs is not None and self.front.jobs.durable

    async def _when_ended(self, name: str, wait: float, is_new: bool) -> None:
        board = self.front.jobs
        assert board is not None
        try:
            state = await board.wait(name, wait)
            answer = await board.answer(name) if state is not None and state.job.is_ended else None
        except JobTrouble as trouble:
            if not self._is_gone():
                self.fail(asking.fault(trouble))
            return
        if self._is_gone():
            return
        if state is None:
            self.fail(asking.GONE)
        elif state.job.is_ended:
            self._ended(state, answer)
        else:
            self._accepted(state, is_new)

    def _ended(self, state: JobState, answer: StoredAnswer | None, times: wire.Times = wire.NO_TIMES) -> None:
        self._attached = False
        extra = b""
        if self._job:
            if self._options.retain_answered is not None and self.front.jobs is not None:
                self.front.jobs.shorten(state.job.id, self._options.retain_answered)
            extra = self._lines(state, is_new=True, ended=True)
        route = self.route.job
        try:
            if route is not None and route.ended is not None:
                written = route.ended(state, answer)
                self._send(written.status, written.head, written.body, times, extra)
            elif answer is not None:
                self._send(answer.status, answer.head, answer.body, times, extra)
            else:
                self.fail(views.no_answer(state.job))
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()

    def _accepted(self, state: JobState, is_new: bool) -> None:
        self._attached = False
        route = self.route.job
        extra = self._lines(state, is_new, ended=False)
        try:
            if route is not None and route.accepted is not None:
                written = route.accepted(state)
                self._send(written.status, written.head, written.body, wire.NO_TIMES, extra)
            else:
                self._send(202, b"application/json", views.to_json(state), wire.NO_TIMES, extra)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            self.blunder()

    def _lines(self, state: JobState, is_new: bool, ended: bool) -> bytes:
        """The headers that Panglot adds, whatever the platform answers."""
        lines = b"location: /jobs/%b\r\nx-panglot-durable: %b\r\n" % (
            state.job.id.encode(), b"true" if state.durable else b"false",
        )  # fmt: skip
        if not ended:
            lines += b"retry-after: 1\r\n"
            if self._preference.respond_async:
                lines += b"preference-applied: respond-async\r\n"
        return lines if is_new else lines + b"idempotency-replayed: true\r\n"

    # Ending

    def _done(self, status: int, times: tuple[int, int, int, int, int], total: int) -> None:
        if self._job or self._options.is_held:
            # Else the engine would take the wait for the load of a request, and the job would make way for itself.
            self.model.metrics.waited_for_jobs += total
        super()._done(status, times, total)

    def cancel(self) -> None:
        """Let the request go: its client has disconnected. The job goes on, unless it is attached."""
        super().cancel()
        if self._held is not None and self._timer is not None:
            # Else it is being stored, and `_adopted` finds that the client is gone.
            call = self._held
            self._release_held()
            call.cancel(call)
        self._cancel_attached()

    def _cancel_attached(self) -> None:
        if self._attached and self._job and self.front.jobs is not None:
            self._attached = False
            asyncio.ensure_future(self.front.jobs.cancel(self._job)).add_done_callback(_log_failure)


def _log_failure(done: asyncio.Future[Any]) -> None:
    if not done.cancelled() and done.exception() is not None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "the server itself failed on a job", "exception": done.exception()}
        )


def _storable(new: NewJob) -> NewJob:
    return new._replace(head=_without_private(new.head))


def _without_private(head: bytes) -> bytes:
    """The head for the worker without headers that carry credentials: it is stored."""
    fields = head.split(b"\0")
    index = wire.Head._fields.index("headers")
    if len(fields) > index and fields[index]:
        lines = fields[index].split(b"\n")
        fields[index] = b"\n".join(line for line in lines if line.partition(b":")[0] not in PRIVATE)
    return b"\0".join(fields)
