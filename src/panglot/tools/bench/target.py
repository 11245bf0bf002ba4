"""The target of a bench: a server that runs already, or a package that is served for the bench."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from panglot.errors import StartError
from panglot.inputs.base import About, ClientRequest, Given
from panglot.recording.recording import Recording, request_bytes, why_not_sent
from panglot.tools.doctor import selftest
from panglot.tools.listening import listener, socket_listener
from panglot.tools.run.inputs import Input, OwnExample, UnreadableInput, own_example, request_for
from panglot.tools.running_server import NOT_FOUND, RunningServer

BATCH = re.compile(r'panglot_batch_size_bucket\{(?:[^}]*,)?le="([^"]+)"\} (\S+)')
TOTAL = re.compile(r"panglot_batch_size_(sum|count)(?:\{[^}]*\})? (\S+)")
BAD = 400
MOST_RECORDED, MOST_RECORDED_BYTES = 10_000, 256 << 20
"""How much of a recording is a load: the generator has all requests in memory."""
LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass
class Batches:
    """How many batches had each size. A size is the upper end of a bucket of sizes."""

    sizes: dict[int, int] = field(default_factory=dict)
    count: float = 0.0
    items: float = 0.0

    @classmethod
    def of(cls, metrics: str) -> Batches:
        """The batches in a text of /metrics, summed over pools."""
        batches = cls()
        below = 0.0
        for edge, text in BATCH.findall(metrics):
            count = float(text)
            # Buckets of Prometheus count all smaller ones too. A lower count begins the buckets of the next pool.
            below = below if count >= below else 0.0
            if edge != "+Inf":
                size = int(float(edge))
                batches.sizes[size] = batches.sizes.get(size, 0) + int(count - below)
            below = count if edge != "+Inf" else 0.0
        for name, text in TOTAL.findall(metrics):
            if name == "sum":
                batches.items += float(text)
            else:
                batches.count += float(text)
        return batches

    def since(self, before: Batches) -> Batches:
        sizes = {size: count - before.sizes.get(size, 0) for size, count in self.sizes.items()}
        remaining = {size: count for size, count in sizes.items() if count > 0}
        return Batches(remaining, self.count - before.count, self.items - before.items)


@dataclass
class BenchTarget:
    """A server with its requests, ready to be sent, and the right answer to each."""

    client: RunningServer
    about: About
    pid: int | None
    folder: Path | None = None
    """The folder of a package that is served here."""
    requests: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    def prepare(self, inputs: Sequence[Input]) -> None:
        """Make the requests, of the target's own example if there are no inputs, and send each once.

        Raises StartError when one of them fails.
        """
        entries: Sequence[Input | OwnExample] = inputs or [own_example(self.about, self.folder)]
        for entry in entries:
            if isinstance(entry, UnreadableInput):
                raise StartError(f"{entry.name}: {entry.problem}", fix="leave it out, or panglot run to see which work")
            self._add(entry)

    def prepare_recorded(self, path: Path) -> None:
        """Take the requests and answers of a recording, as far as memory for the load allows.

        Raises StartError when no request can be sent.
        """
        size = 0
        with Recording(path) as recording:
            for pair in recording.pairs():
                if why_not_sent(pair) or pair.answer.status >= BAD:
                    continue
                size += len(pair.request.body) + len(pair.answer.body)
                if self.requests and (size > MOST_RECORDED_BYTES or len(self.requests) == MOST_RECORDED):
                    break
                self.requests.append(request_bytes(pair, self.client.address.authority, self.client.headers()))
                self.answers.append(pair.answer.body)
        if not self.requests:
            raise StartError(f"{path} has no request that can be sent", fix="panglot replay --list shows its pairs")

    def _add(self, given: Given | OwnExample) -> None:
        request = request_for(self.about, given)
        reply = self.client.send(request, "*/*")
        if reply.failed:
            raise StartError(
                f"{self.client.address}{request.path} answers {given.name} with {reply.error}",
                fix="name inputs it takes; panglot inspect shows how they are sent, --field and --dialect change it",
            )
        self.requests.append(self._bytes(request))
        self.answers.append(reply.body)

    def _bytes(self, request: ClientRequest) -> bytes:
        content_type, body = request.encoded()
        headers = {
            "Host": self.client.address.authority,
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            "Accept": "*/*",
            **request.headers,
            **self.client.headers(),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{request.method} {request.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body

    def batches(self) -> Batches:
        """The batches so far; none if the server does not count them."""
        with contextlib.suppress(StartError, ValueError):
            # Where the address names one of several models, only its batches.
            status, text = self.client.get(f"{self.client.address.model}/metrics")
            if status == NOT_FOUND:
                status, text = self.client.get("/metrics")
            if status == 200:
                return Batches.of(text)
        return Batches()


@contextlib.contextmanager
def running(client: RunningServer) -> Iterator[BenchTarget]:
    """A server that runs already. Its cost is watched when it is on this machine."""
    about, address = client.describe(), client.address
    if address.socket:
        pid = socket_listener(address.socket)
    else:
        pid = listener(address.port) if address.host in LOCAL else None
    yield BenchTarget(client, about, pid)


@contextlib.contextmanager
def served(plan: selftest.ServerPlan, dialect: str, field: str) -> Iterator[BenchTarget]:
    """A package, served by a process of its own until this is closed. Raises StartError when it does not load."""
    server = selftest.PanglotProcess(plan)
    try:
        try:
            port = server.port()
            server.wait_ready(port)
        except selftest.ServerGone as gone:
            server.stop()
            raise StartError(selftest.last_words(server) or str(gone)) from None
        client = RunningServer(f"http://127.0.0.1:{port}", dialect, field)
        client.token = plan.token.decode("latin-1")
        yield BenchTarget(client, client.describe(), server.process.pid, plan.folder)
    finally:
        server.stop()
