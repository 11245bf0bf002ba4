"""The load generator: a process of its own, so that nothing else disturbs its clock.

A `LoadPlan` comes in as one JSON object and a `LoadOutcome` goes out as another. Requests are bytes that were made
before the run. An answer is parsed only to find its end and to check it.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import random
import resource
import ssl
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from panglot.tools.bench.answer_parser import AnswerParser
from panglot.tools.bench.ticking import Ticker

MOST_TIMINGS = 200_000
MOST_VARIANTS = 1000
"""How many answers are remembered as good although the last digits of their numbers differ."""
RECONNECT_PAUSE = 0.05
clock = time.monotonic


@dataclass
class LoadPlan:
    """What to send where, for how long: `rate` requests per second, or else `concurrency` always under way."""

    host: str
    port: int
    requests: list[str]
    """Whole requests in base64, sent in turn."""
    expected: list[str] = field(default_factory=list)
    """The right answers in base64, in the order of the requests; none: answers are not checked."""
    secure: bool = False
    concurrency: int = 1
    rate: float = 0.0
    even: bool = False
    """Whether requests of a rate come at even distances instead of by chance."""
    duration: float = 10.0
    warmup: float = 1.0
    connections: int = 512
    """The most connections that a rate may use."""
    timeout: float = 60.0
    seed: int = 1
    socket: str = ""
    """The path of a Unix socket, instead of host and port."""


@dataclass
class LoadOutcome:
    """The figures of one run. Times are microseconds.

    `latencies` has the requests that were meant to begin in the window, and `begun` their beginnings, from its start.
    """

    latencies: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    answered: int = 0
    """Answers that came within the window."""
    seconds: float = 0.0
    wrong: int = 0
    first_wrong: str = ""
    unanswered: int = 0
    timings: list[str] = field(default_factory=list)
    cpu: float = 0.0
    """The share of one core that this process used in the window."""
    late: list[int] = field(default_factory=list)
    """How much later than planned the requests of a rate were begun."""


class LoadConnection(asyncio.Protocol):
    """A connection for one request at a time. `began` is the planned beginning of this request; negative: none."""

    __slots__ = ("began", "load", "number", "parser", "transport")

    def __init__(self, load: LoadRun) -> None:
        self.load = load
        self.parser = AnswerParser()
        self.transport: Any = None
        self.began = -1.0
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.load.free(self)

    def send(self, number: int, began: float) -> None:
        self.began, self.number = began, number
        self.transport.write(self.load.requests[number])

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and notify the run when the answer is complete."""
        try:
            complete = self.parser.feed(data)
        except ValueError as error:
            self.load.failed(self, f"no HTTP: {error}")
            self.transport.abort()
            return
        if complete and self.began >= 0:
            began, self.began = self.began, -1.0
            self.load.finished(self, began)

    def connection_lost(self, exc: Exception | None) -> None:
        # An answer without a length ends with its connection: this is no failure.
        if self.parser.until_close and self.began >= 0:
            self.parser.close()
            began, self.began = self.began, -1.0
            self.load.finished(self, began)
        self.load.lost(self, exc)


class LoadRun:
    """One run at one load."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.requests = [base64.b64decode(text) for text in plan.requests]
        self.expected = [base64.b64decode(text) for text in plan.expected]
        self.outcome = LoadOutcome()
        self.statuses: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        self.timings: list[bytes] = []
        self.as_good: set[tuple[int, bytes]] = set()
        self.open: set[LoadConnection] = set()
        self.idle: deque[LoadConnection] = deque()
        self.backlog: deque[float] = deque()
        self.wanted = plan.concurrency
        self.opening = 0
        self.connecting: set[asyncio.Future[None]] = set()
        """Tasks that open connections. They are stored here because the loop itself refers to tasks weakly."""
        self.turn = 0
        self.start = self.end = 0.0
        self.over = False
        self.done = asyncio.Event()

    # Connections

    def _open(self) -> None:
        self.opening += 1
        task = asyncio.ensure_future(self._connect())
        self.connecting.add(task)
        task.add_done_callback(self.connecting.discard)

    async def _connect(self) -> None:
        context = ssl.create_default_context() if self.plan.secure else None
        while not self.over:
            try:
                async with asyncio.timeout(self.plan.timeout):
                    await self._connected(context)
                break
            except (OSError, TimeoutError) as error:
                self.errors[f"connect: {type(error).__name__}"] += 1
                await asyncio.sleep(RECONNECT_PAUSE)
        self.opening -= 1

    async def _connected(self, context: ssl.SSLContext | None) -> None:
        loop, plan = asyncio.get_running_loop(), self.plan
        if plan.socket:
            await loop.create_unix_connection(lambda: LoadConnection(self), plan.socket)
        else:
            await loop.create_connection(lambda: LoadConnection(self), plan.host, plan.port, ssl=context)

    def free(self, connection: LoadConnection) -> None:
        """Send the next request on a connection without one, or put the connection aside for later."""
        self.open.add(connection)
        if self.over:
            connection.transport.close()
        elif self.plan.rate:
            if self.backlog:
                self._send(connection, self.backlog.popleft())
            else:
                self.idle.append(connection)
        else:
            self._send(connection, clock())

    def lost(self, connection: LoadConnection, exc: Exception | None) -> None:
        """Forget a connection that was closed, and open another one unless the run is over."""
        self.open.discard(connection)
        if connection.began >= 0:
            self.failed(connection, f"lost: {type(exc).__name__}" if exc else "closed without an answer")
        elif connection in self.idle:
            self.idle.remove(connection)
        if self.over:
            self._end_when_quiet()
        elif len(self.open) + self.opening < self.wanted:
            self._open()

    # Requests

    def _send(self, connection: LoadConnection, began: float) -> None:
        turn = self.turn
        self.turn = turn + 1
        connection.send(turn % len(self.requests), began)

    def finished(self, connection: LoadConnection, began: float) -> None:
        """Record an answer, and go on with its connection."""
        now = clock()
        parser = connection.parser
        if began >= self.start:
            outcome = self.outcome
            if now <= self.end:
                outcome.answered += 1
            if began < self.end:
                outcome.latencies.append(int((now - began) * 1e6))
                outcome.begun.append(int((began - self.start) * 1e6))
                self.statuses[parser.status] += 1
                if len(self.timings) < MOST_TIMINGS:
                    self.timings.append(parser.timing)
                if self.expected and not parser.is_answer(self.expected[connection.number]):
                    self._differs(connection)
        elif now > self.start:
            # Begun in the warm-up and answered in the window: this is an answer for the throughput, but its request is
            # none of the window's, and has no latency.
            self.outcome.answered += 1
        if parser.closing:
            connection.transport.close()
        elif not self.over:
            self.free(connection)
        if self.over:
            self._end_when_quiet()

    def _differs(self, connection: LoadConnection) -> None:
        """Count an answer with unexpected bytes as wrong, unless only the last digits of its numbers differ."""
        number, parser = connection.number, connection.parser
        body = parser.body()
        if parser.status < 400 and (number, body) in self.as_good:
            return
        if parser.status < 400 and as_good(body, self.expected[number]):
            if len(self.as_good) < MOST_VARIANTS:
                self.as_good.add((number, body))
            return
        self.outcome.wrong += 1
        if not self.outcome.first_wrong:
            shown = body[:300].decode(errors="replace")
            self.outcome.first_wrong = f"request {number + 1}, status {parser.status}: {shown}"

    def failed(self, connection: LoadConnection, why: str) -> None:
        began, connection.began = connection.began, -1.0
        if began >= self.start:
            self.errors[why] += 1

    # The run

    async def run(self) -> LoadOutcome:
        """Open the connections, keep them busy for warm-up and duration, and wait for the last answers."""
        plan = self.plan
        self.wanted = plan.concurrency if not plan.rate else min(plan.connections, max(4, plan.concurrency))
        self.start = clock() + plan.warmup
        self.end = self.start + plan.duration
        for _ in range(self.wanted):
            self._open()
        ticker = self._begin_rate() if plan.rate else None
        await asyncio.sleep(plan.warmup)
        used = _cpu()
        await asyncio.sleep(max(0.0, self.end - clock()))
        self.outcome.cpu = (_cpu() - used) / max(1e-9, clock() - self.start)
        self.outcome.seconds = plan.duration
        await self._finish(ticker)
        return self._summarised()

    async def _finish(self, ticker: Ticker | None) -> None:
        self.over = True
        if ticker is not None:
            ticker.close()
        for connection in list(self.open):
            if connection.began < 0:
                connection.transport.close()
        self._end_when_quiet()
        try:
            async with asyncio.timeout(self.plan.timeout):
                await self.done.wait()
        except TimeoutError:
            pass
        self.outcome.unanswered = sum(1 for connection in self.open if connection.began >= 0) + len(self.backlog)
        for connection in list(self.open):
            # So that `lost` does not count an error for a connection that is aborted here.
            connection.began = -1.0
            connection.transport.abort()
        # The loop calls `connection_lost` in its next turn.
        await asyncio.sleep(0)

    def _end_when_quiet(self) -> None:
        if not any(connection.began >= 0 for connection in self.open):
            self.done.set()

    def _summarised(self) -> LoadOutcome:
        outcome = self.outcome
        outcome.statuses = {str(status): count for status, count in sorted(self.statuses.items())}
        outcome.errors = dict(self.errors)
        outcome.timings = [timing.decode("latin-1") for timing in self.timings if timing]
        return outcome

    # Requests at a rate, whether or not the server keeps up

    def _begin_rate(self) -> Ticker:
        self.chance = random.Random(self.plan.seed)  # noqa: S311  spreads arrivals
        self.next = clock() + 0.01
        ticker = Ticker(self._tick)
        ticker.at(self.next)
        return ticker

    def _tick(self, ticker: Ticker) -> None:
        now = clock()
        while self.next <= now:
            if self.next >= self.start:
                self.outcome.late.append(int((now - self.next) * 1e6))
            # With the planned time, not the present one: else a server that stalls would hide the delay of requests
            # that could not be sent meanwhile (coordinated omission).
            self._begin(self.next)
            self.next += 1 / self.plan.rate if self.plan.even else self.chance.expovariate(self.plan.rate)
        if self.next < self.end:
            ticker.at(self.next)

    def _begin(self, meant: float) -> None:
        if self.idle:
            self._send(self.idle.popleft(), meant)
            return
        # With its planned time: waiting for a connection is part of the latency.
        self.backlog.append(meant)
        if len(self.open) + self.opening < self.plan.connections:
            self.wanted += 1
            self._open()


def as_good(body: bytes, expected: bytes) -> bool:
    """Whether two bodies of JSON are equal, up to the last digits of numbers, which change with the batch."""
    from panglot.tools.check.compare import Tolerance, compare, flat

    try:
        left, right = (dict(flat(json.loads(text))) for text in (body, expected))
    except ValueError:
        return False
    return not any(verdict.differs for verdict in compare(left, right, Tolerance(types=False)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """LoadPlan on standard input, outcome on standard output."""
    import uvloop

    plan = LoadPlan(**json.load(sys.stdin))
    # A collection of garbage would be measured as latency of the server.
    gc.disable()

    async def run() -> LoadOutcome:
        return await LoadRun(plan).run()

    output = memoryview(json.dumps(vars(uvloop.run(run()))).encode())
    # A pipe may take less than all of it.
    while output:
        output = output[os.write(sys.stdout.fileno(), output) :]


if __name__ == "__main__":
    main()
