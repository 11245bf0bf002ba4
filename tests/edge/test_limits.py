"""Every limit on size and number of the HTTP side: what is just within it is served, one more is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

import pytest

from support.raw import post
from support.server import Server, serving
from support.wire import Reply, Wire

MIB = 1 << 20
TYPE_AND_HOST = len("Content-Typeapplication/jsonHostlocalhostContent-Length1")
"""Bytes of names and values of the headers of `post(b"7")`; there are three."""


class Limit(NamedTuple):
    flags: tuple[str, ...]
    request: Callable[[int], bytes]
    """A request that reaches the limit by so much."""
    limit: int
    status: int
    code: str


def path(length: int) -> bytes:
    return post(b"7", path="/predict?" + "x" * (length - len("/predict?")))


def one_header(length: int) -> bytes:
    return post(b"7", "X-Long: " + "x" * (length - len("X-Long")))


def all_headers(length: int) -> bytes:
    left = length - TYPE_AND_HOST
    lines = []
    while left > 0:
        size = min(left, 100) if left >= 104 or left <= 100 else 50
        lines.append("X-A: " + "x" * (size - 3))
        left -= size
    return post(b"7", *lines)


def header_count(count: int) -> bytes:
    return post(b"7", *[f"X-{number}: 1" for number in range(count - 3)])


def body(size: int) -> bytes:
    return post(b" " * (size - 1) + b"7")


def chunked_body(size: int) -> bytes:
    data = b" " * (size - 1) + b"7"
    return post(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data), "Transfer-Encoding: chunked")


def chunks(count: int) -> bytes:
    return post(b"1\r\n \r\n" * (count - 1) + b"1\r\n7\r\n0\r\n\r\n", "Transfer-Encoding: chunked")


def depth(levels: int) -> bytes:
    return post(b"[" * levels + b"]" * levels)


def form(*parts: tuple[str, bytes]) -> bytes:
    pieces = [
        f"--B\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + data + b"\r\n" for head, data in parts
    ]
    request = post(b"".join(pieces) + b"--B--\r\n")
    return request.replace(b"application/json", b"multipart/form-data; boundary=B")


def parts(count: int) -> bytes:
    return form(*[(f'name="n{number}"', b"1") for number in range(count)])


def files(count: int) -> bytes:
    return form(*[(f'name="n{number}"; filename="f"', b"1") for number in range(count)])


def text_field(size: int) -> bytes:
    return form(('name="a"', b"x" * size))


LIMITS = {
    "request line": Limit(("--max-request-line", "1000"), path, 1000, 414, "uri_too_long"),
    "one header": Limit(("--max-header", "1000"), one_header, 1000, 431, "headers_too_large"),
    "all headers": Limit(("--max-headers", "2000"), all_headers, 2000, 431, "headers_too_large"),
    "number of headers": Limit(("--max-header-count", "40"), header_count, 40, 431, "headers_too_large"),
    "body": Limit(("--max-body", "5000"), body, 5000, 413, "body_too_large"),
    "chunked body": Limit(("--max-body", "5000"), chunked_body, 5000, 413, "body_too_large"),
    "number of chunks": Limit(("--max-chunks", "10"), chunks, 10, 400, "too_many_chunks"),
    "bytes held": Limit(("--request-memory", "5000"), body, 5000, 503, "memory"),
    "bytes held, chunked": Limit(("--request-memory", "5000"), chunked_body, 5000, 503, "memory"),
    "JSON body": Limit(("--max-json", "5000"), body, 5000, 413, "bad_request"),
    "JSON depth": Limit(("--max-json-depth", "10"), depth, 10, 400, "bad_request"),
    "parts": Limit(("--max-parts", "5"), parts, 5, 413, "bad_request"),
    "files": Limit(("--max-files", "3"), files, 3, 413, "bad_request"),
    "text field": Limit(("--max-text-field", "100"), text_field, 100, 413, "bad_request"),
}

ALONE = ("--max-body", "--request-memory")
"""What would be reached before other limits."""
TOGETHER = tuple(flag for limit in LIMITS.values() if limit.flags[0] not in ALONE for flag in limit.flags)
DEFAULTS = {
    "request line": LIMITS["request line"]._replace(limit=8192),
    "one header": LIMITS["one header"]._replace(limit=8192),
    "all headers": LIMITS["all headers"]._replace(limit=32768, request=lambda size: wide_headers(size)),
    "number of headers": LIMITS["number of headers"]._replace(limit=100),
    "body": LIMITS["body"]._replace(limit=64 * MIB, request=lambda size: raw_body(size)),
    "number of chunks": LIMITS["number of chunks"]._replace(limit=65536),
    "JSON body": LIMITS["JSON body"]._replace(limit=32 * MIB),
    "JSON depth": LIMITS["JSON depth"]._replace(limit=64),
    "parts": LIMITS["parts"]._replace(limit=64),
    "files": LIMITS["files"]._replace(limit=32),
    "text field": LIMITS["text field"]._replace(limit=MIB),
}
"""What holds when nothing is set."""


def wide_headers(size: int) -> bytes:
    left = size - TYPE_AND_HOST
    lines = ["X-A: " + "x" * 7997] * 4
    return post(b"7", *lines, "X-B: " + "x" * (left - 4 * 8000 - 3))


def raw_body(size: int) -> bytes:
    return post(b"x" * size).replace(b"application/json", b"application/octets")


def say(server: Server, request: bytes) -> Reply:
    with Wire(server) as client:
        client.send(request)
        return client.reply()


def check(server: Server, limit: Limit) -> None:
    within = say(server, limit.request(limit.limit))
    assert within.status == 200, within
    beyond = say(server, limit.request(limit.limit + 1))
    assert beyond.status == limit.status, beyond
    error = json.loads(beyond.body)["error"]
    assert error["code"] == limit.code
    assert error["request_id"] == beyond.headers["x-request-id"]
    if limit.code != "bad_request":
        assert beyond.headers["connection"] == "close"
    if limit.status == 503:
        assert int(beyond.headers["retry-after"]) >= 1
    assert server.predict(1).status_code == 200


@pytest.fixture(scope="module")
def limited() -> Iterator[Callable[[Limit], Server]]:
    """The server with a limit: one for all that do not stand in each other's way."""
    with ExitStack() as stack:

        @cache
        def started(*flags: str) -> Server:
            return stack.enter_context(serving("edge_shape", *flags))

        yield lambda limit: started(*(limit.flags if limit.flags[0] in ALONE else TOGETHER))


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_limit_and_one_more(limit: Limit, limited: Callable[[Limit], Server]) -> None:
    check(limited(limit), limit)


@pytest.fixture(scope="module")
def usual() -> Iterator[Server]:
    with serving("edge_shape") as running:
        yield running


@pytest.mark.parametrize("limit", DEFAULTS.values(), ids=DEFAULTS.keys())
def test_default_and_one_more(usual: Server, limit: Limit) -> None:
    """The limits of a server that was told nothing."""
    check(usual, limit)


def test_a_body_that_says_its_length_is_refused_before_it_is_read(usual: Server) -> None:
    with Wire(usual) as client:
        client.send(post(b"", f"Content-Length: {64 * MIB + 1}"))
        assert client.reply().status == 413
        assert client.wait_closed()


def test_a_body_of_unknown_length_is_refused_at_the_byte_that_crosses(limited: Callable[[Limit], Server]) -> None:
    with Wire(limited(LIMITS["body"])) as client:
        client.send(post(b"1388\r\n" + b" " * 5000 + b"\r\n", "Transfer-Encoding: chunked"))
        assert client.is_silent()
        client.send(b"1\r\n7\r\n")
        assert client.reply().status == 413
        assert client.wait_closed()


def test_other_routes_take_small_bodies_only(usual: Server) -> None:
    assert say(usual, post(b"x" * 65536, path="/nowhere")).status == 404
    assert say(usual, post(b"x" * 65537, path="/nowhere")).status == 413
    many = post(b"4000\r\n" + b"x" * 16384 + b"\r\n", "Transfer-Encoding: chunked", path="/nowhere")
    assert say(usual, many + (b"4000\r\n" + b"x" * 16384 + b"\r\n") * 4).status == 413
