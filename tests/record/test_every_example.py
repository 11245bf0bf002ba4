"""Every example behind the proxy, under load: the bytes are those without the proxy, and a replay has no difference."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from panglot.tools.bench.target import running
from panglot.tools.run.inputs import gather
from panglot.tools.running_server import RunningServer
from support import mlflow
from support.server import ROOT, Server, panglot, serving
from support.traffic import SOAK, times
from support.upstream import RecordingProxy, received, recorded

EXAMPLES = {
    "azureml": "request.json",
    "bare": "seven.png",
    "cog": "request.json",
    "digits": "seven.png",
    "evals": "seven.png",
    "hfendpoint": "seven.png",
    "megflow/digits": "seven.png",
    "paieas": "seven.png",
    "runpod": "test_input.json",
    "sagemaker": "request.json",
    "tiinfer": "request.json",
    "torchserve": "request.json",
    "triton": "request.json",
    "truss": "request.json",
}
"""Examples, and the file that each is asked with."""
WITH_FRAMEWORKS = {
    "mlflow": "serving_input_example.json", "modelarts/model": "seven.png", "paddle": "images/demo.png",
}  # fmt: skip
MASKS = {"cog": ("/metrics/predict_time",), "runpod": ("/id", "/delayTime", "/executionTime")}
"""Places of answers that are new with every request, by the platform's contract."""
FLEETING = re.compile(rb"\r\n(?:date|server-timing|x-ms-[a-z-]+-ms): [^\r]*", re.IGNORECASE)
REQUEST_ID = re.compile(rb"\r\nx-request-id: ([^\r]*)", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: \d+", re.IGNORECASE)
TIMES = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*|\"(?:took|time|duration|elapsed)[a-z_]*\":[\d.]+")
OF_JOBS = re.compile(rb"\b[0-9a-hjkmnp-tv-z]{26}\b|\"(?:predict_time|delayTime|executionTime)\":[\d.e-]+")
"""Ids of jobs, and their times, which have a varying number of digits."""
NOISE = bytes(range(256)) * 8192


def closing(request: bytes) -> bytes:
    """The request with an end of its connection after the answer."""
    first, _, rest = request.partition(b"\r\n")
    return first + b"\r\nConnection: close\r\n" + re.sub(rb"(?i)(^|\r\n)connection: [^\r]*", b"", rest, count=1)


def with_body(request: bytes, body: bytes) -> bytes:
    head = request.partition(b"\r\n\r\n")[0]
    return re.sub(rb"(?i)content-length: \d+", b"Content-Length: %d" % len(body), head) + b"\r\n\r\n" + body


def in_chunks(request: bytes) -> bytes:
    head, _, body = request.partition(b"\r\n\r\n")
    head = re.sub(rb"(?i)content-length: \d+", b"Transfer-Encoding: chunked", head)
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head + b"\r\n\r\n" + chunks + b"0\r\n\r\n"


def exchanged(port: int, request: bytes) -> bytes:
    """What came back, without what is new with every answer."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as sock:
        sock.settimeout(60)
        sock.sendall(request)
        answer = received(sock)
    if (identity := REQUEST_ID.search(answer)) and answer.count(identity[1]) > 1:
        # Its number grows, and with it an answer that holds it.
        answer = LENGTH.sub(b"", answer)
    if OF_JOBS.search(answer):
        answer = OF_JOBS.sub(b"", LENGTH.sub(b"", answer))
    if identity:
        answer = answer.replace(identity[1], b"ID")
    return TIMES.sub(b"", FLEETING.sub(b"", answer))


def aborted(port: int, request: bytes, share: float) -> None:
    """Send a part of a request, or all of it, and go."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as sock:
        sock.sendall(request[: int(len(request) * share)])


def requests_of(server: Server, file: Path) -> dict[str, bytes]:
    with running(RunningServer(server.url)) as target:
        target.prepare(gather([str(file)]))
        usual = closing(target.requests[0])
    missing = re.sub(rb"^(\S+) \S+", rb"\1 /not/there", usual, count=1)
    return {
        "usual": usual,
        "in chunks": in_chunks(usual),
        "wrong": with_body(usual, b'{"'),
        "large": with_body(usual, NOISE),
        "missing": missing,
    }


def under_load(proxy: RecordingProxy, requests: dict[str, bytes], expected: dict[str, bytes]) -> Counter[str]:
    """Send every kind, with aborts between them; kinds whose bytes were others than without the proxy."""

    def send(number: int) -> str:
        name = list(requests)[number % len(requests)]
        if number % 4 == 3:
            aborted(proxy.port, requests["usual"], (0.5, 1.0)[number % 8 == 3])
        return "" if exchanged(proxy.port, requests[name]) == expected[name] else name

    with ThreadPoolExecutor(4) as threads:
        return Counter(filter(None, threads.map(send, range(times(25, 1000)))))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", {**EXAMPLES, **(WITH_FRAMEWORKS if SOAK else {})})
def test_bytes_are_those_without_the_proxy_and_a_replay_has_no_difference(name: str, tmp_path: Path) -> None:
    folder, path = ROOT / "examples" / name, tmp_path / "old.rec"
    env = {"PANGLOT_PYTHON": mlflow.python()} if name == "mlflow" else {}
    with serving(folder, env=env) as server:
        requests = requests_of(server, folder / {**EXAMPLES, **WITH_FRAMEWORKS}[name])
        expected = {kind: exchanged(server.port, request) for kind, request in requests.items()}
        assert expected["usual"].startswith(b"HTTP/1.1 200"), expected["usual"]
        with recorded(server.url, path) as proxy:
            assert under_load(proxy, requests, expected) == {}
            said = proxy.stop()
        assert "dropped" not in said
        masks = [word for place in MASKS.get(name, ()) for word in ("--mask", place)]
        done = panglot("replay", str(path), server.url, "--connections", "4", "--json", *masks)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["different"] == 0
        # Aborted exchanges have no answer, and noise in place of a form is not written.
        assert report["compared"] >= times(15, 600)
        assert report["compared"] + sum(report["skipped"].values()) >= times(25, 1000)
