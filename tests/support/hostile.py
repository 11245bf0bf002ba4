"""What Panglot answers to hostile framing, beside eight other servers: the probes, and the page that shows them.

`PYTHONPATH=tests python -m support.hostile > docs/reference/hostile-http.md` runs them all and writes the page anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from support.raw import post
from support.server import Server, serving
from support.traffic import send
from support.wire import Reply, Wire

PACKAGE = "edge_echo"
PEERS = (
    "uvicorn httptools", "uvicorn h11", "hypercorn", "granian", "gunicorn gthread", "gunicorn asgi", "daphne", "aiohttp"
)  # fmt: skip
VERSIONS = "uvicorn 0.54.0, hypercorn 0.18.0, granian 2.8.7, gunicorn 27.0.0, daphne 4.2.3, aiohttp 3.14.5"

MEASURED = {
    "Content-Length with chunked": "400x | **serves both requests** | **serves both requests** | 200 then close | 400x"
    " | 400x | 400x | 400x",
    "Content-Length 2^64": "400x | waits | waits | 400x | waits | waits | waits | 400x",
    "bare LF line ends": "400x | 200o | 200o | 200o | 400x | 400x | waits | 400x",
    "folded header line": "400x | 200o | 200o | 400x | 400x | 400x | 200o | 400x",
    "broken chunk": "400x | 400x | 400x | **500** | 400x | 400x | 400x | 400x",
    "missing Host / two Hosts": "200 / 200 | 400 / 400 | 400 / 400 | 200 / 200 | 200 / 400 | 200 / 400 | 200 / 200"
    " | 400 / 400",
    "one 8 MB header": "**200** | 400 | 431 | 431 | 431 | 431 | closed | 400",
    "5,000 headers": "**200** | **200** | **200** | 431 | 431 | 431 | 400 | 400",
    "100 KB request line": "400 | **200** | 431 | 414 | 414 | 414 | closed | 400",
    "64 MB body, no limit set": "200 | 200 | 200 | 200 | 200 | 200 | 200 | 413",
    "header bytes dripped, 1 per 2 s": "hold | hold | closed 6 s | closed 31 s | hold | hold | hold | hold",
    "body bytes dripped, 1 per 2 s": "hold | hold | hold | hold | hold | hold | hold | hold",
    "silent connection": "hold | hold | closed 6 s | hold | closed 8 s | hold | hold | hold",
    "SIGTERM, request in flight 3 s": "200 | 200 | 200 | 200 | 200 | 200 | **lost** | 200",
}
"""What the others did, one run each, watched for 45 seconds."""

INTRODUCTION = f"""\
# Hostile HTTP

This table shows what Panglot answers to malformed requests and to very slow clients, with default settings. Beside it
are eight setups of other Python HTTP servers, also with their defaults: {VERSIONS}.

How to read it: `400x` means answered 400 and closed. `200o` means answered 200 and kept open. `hold` means still
open after 45 s. Bold marks what should not happen. The column of Panglot comes from the tests; the others were measured
once. All ran on the loopback address.
"""

CONCLUSION = """\
Each limit is a setting: see [Limits](../how/limits.md). `tests/edge/test_hostile_page.py` runs these probes and
checks the column of Panglot. `tests/edge/test_framing.py` has all malformed requests that are tested.
"""


def heard(server: Server, sent: bytes, patience: float = 45) -> str:
    """How one request is answered: status, and whether the connection is closed or kept open."""
    with Wire(server, patience=patience) as client:
        client.send(sent)
        replies = [client.reply()]
        client.wait_closed(0.3)
        while client.data:
            replies.append(client.reply())
        return f"{_statuses(replies)}{'x' if client.closed else 'o'}"


def _statuses(replies: Sequence[Reply]) -> str:
    return " and ".join(str(reply.status) for reply in replies)


def smuggled(server: Server) -> str:
    """One request by its Content-Length, two by its chunks."""
    second = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b"0\r\n\r\n" + second
    return heard(server, post(body, f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"))


def hosts(server: Server) -> str:
    return f"{heard(server, post(b'7', host=''))} / {heard(server, post(b'7', 'Host: localhost'))}"


def large(server: Server) -> str:
    """A body of 64 MB, and one byte beyond the limit."""
    within = post(b"x" * 64_000_000).replace(b"application/json", b"application/octets")
    beyond = post(b"", f"Content-Length: {(64 << 20) + 1}")
    return f"{heard(server, within)}; {heard(server, beyond)} beyond 64 MiB"


def dripped(begin: bytes, byte: bytes) -> Callable[[Server], str]:
    def probe(server: Server, every: float = 2.0) -> str:
        began = time.monotonic()
        with Wire(server) as client:
            client.send(begin)
            while not client.closed and time.monotonic() - began < 45:
                client.send(byte)
                client.read(every)
            seconds = time.monotonic() - began
            return f"{client.reply().status}, closed {seconds:.0f} s" if client.closed else "**hold**"

    return probe


def silent(server: Server) -> str:
    began = time.monotonic()
    with Wire(server) as client:
        return f"closed {time.monotonic() - began:.0f} s" if client.wait_closed(45) else "**hold**"


def stopped(server: Server, seconds: float = 3.0) -> str:
    """The answer to a request that was running when the server was told to stop."""
    sent = send(server, {"id": 1, "sleep": seconds})
    while not server.metric("panglot_requests_in_progress"):
        time.sleep(0.01)
    code = server.stop()
    answer = sent.result(30)
    assert json.loads(answer.body)["id"] == 1
    return f"{answer.status}, exit {code}"


PROBES: dict[str, Callable[[Server], str]] = {
    "Content-Length with chunked": smuggled,
    "Content-Length 2^64": lambda server: heard(server, post(b"7", f"Content-Length: {2**64}")),
    "bare LF line ends": lambda server: heard(server, post(b"7").replace(b"\r\n", b"\n")),
    "folded header line": lambda server: heard(server, post(b"7", "X: a\r\n b")),
    "broken chunk": lambda server: heard(server, post(b"zz\r\n7\r\n0\r\n\r\n", "Transfer-Encoding: chunked")),
    "missing Host / two Hosts": hosts,
    "one 8 MB header": lambda server: heard(server, post(b"7", "X: " + "a" * 8_000_000)),
    "5,000 headers": lambda server: heard(server, post(b"7", *[f"X-{number}: 1" for number in range(5000)])),
    "100 KB request line": lambda server: heard(server, post(b"7", path="/" + "a" * 100_000)),
    "64 MB body, no limit set": large,
    "header bytes dripped, 1 per 2 s": dripped(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX: ", b"a"),
    "body bytes dripped, 1 per 2 s": dripped(post(b"", "Content-Length: 1000"), b"1"),
    "silent connection": silent,
    "SIGTERM, request in flight 3 s": stopped,
}


def run(*flags: str) -> dict[str, str]:
    """Panglot's answer to every probe; those that take time run side by side, and the last one ends the server."""
    with serving(PACKAGE, *flags) as server, ThreadPoolExecutor(4) as pool:
        *probes, (last, stop) = PROBES.items()
        waiting = {name: pool.submit(probe, server) for name, probe in probes}
        answers = {name: future.result() for name, future in waiting.items()}
        return {**answers, last: stop(server)}


def page(answers: dict[str, str]) -> str:
    rows = [f"| {name} | {answers[name]} | {MEASURED[name]} |" for name in PROBES]
    head = ["| probe | Panglot | " + " | ".join(PEERS) + " |", "|---" * (2 + len(PEERS)) + "|"]
    return "\n".join([INTRODUCTION, *head, *rows, "", CONCLUSION])


if __name__ == "__main__":
    print(page(run()), end="")
