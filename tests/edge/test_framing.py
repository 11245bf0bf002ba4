"""Corpus 4a and 4b: hostile framing, headers and paths. Refused clearly and at once, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.raw import post, talk
from support.server import Server, serving

GOOD = post(b"7")
CHUNKED = b"1\r\n7\r\n0\r\n\r\n"
TE = "Transfer-Encoding: chunked"


def chunked(body: bytes, *lines: str) -> bytes:
    return post(body, TE, *lines)


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode("latin-1")


REFUSED = {
    "1 Content-Length with chunked": (chunked(CHUNKED, "Content-Length: 1"), {400}),
    "2 chunked, then Content-Length": (post(CHUNKED, "Content-Length: 1", TE), {400}),
    "3 two Content-Lengths": (post(b"7", "Content-Length: 1", "Content-Length: 2"), {400}),
    "4 two equal Content-Lengths": (post(b"7", "Content-Length: 1", "Content-Length: 1"), {400}),
    "5 a list of lengths": (post(b"7", "Content-Length: 1, 1"), {400}),
    "6 a signed length": (post(b"7", "Content-Length: +1"), {400}),
    "7 a negative length": (post(b"7", "Content-Length: -1"), {400}),
    "9 a length of 2^64": (post(b"7", "Content-Length: 18446744073709551616"), {400}),
    "9 a length just below 2^64": (post(b"7", "Content-Length: 18446744073709551615"), {400, 413}),
    "10 a hexadecimal length": (post(b"7", "Content-Length: 0x1"), {400}),
    "11 xchunked": (post(CHUNKED, "Transfer-Encoding: xchunked"), {400, 501}),
    "12 chunked, identity": (post(CHUNKED, "Transfer-Encoding: chunked, identity"), {400, 501}),
    "13 Transfer-Encoding twice": (post(CHUNKED, TE, TE), {400}),
    "14 a space before the colon": (post(b"7", "Content-Length : 1"), {400}),
    "15 a vertical tab before chunked": (post(CHUNKED, "Transfer-Encoding: \x0bchunked"), {400}),
    "15 a form feed after chunked": (post(CHUNKED, "Transfer-Encoding: chunked\x0c"), {400}),
    "16 bare LF": (GOOD.replace(b"\r\n", b"\n"), {400}),
    "17 a bare CR": (post(b"7", "X: a\rb"), {400}),
    "18 a folded line": (post(b"7", "X: a\r\n b"), {400}),
    "19 NUL in a value": (post(b"7", "X: a\0b"), {400}),
    "19 BEL in a value": (post(b"7", "X: a\x07b"), {400}),
    "19 DEL in a value": (post(b"7", "X: a\x7fb"), {400}),
    "20 a name beyond ASCII": (post(b"7", "X\xe9: a"), {400}),
    "21 a chunk size with 0x": (chunked(b"0x1\r\n7\r\n0\r\n\r\n"), {400}),
    "21 a chunk size with +": (chunked(b"+1\r\n7\r\n0\r\n\r\n"), {400}),
    "21 a chunk size with _": (chunked(b"1_0\r\n7\r\n0\r\n\r\n"), {400}),
    "21 a chunk size with a space": (chunked(b" 1\r\n7\r\n0\r\n\r\n"), {400}),
    "22 a chunk size of 17 digits": (chunked(b"1" * 17 + b"\r\n7\r\n0\r\n\r\n"), {400}),
    "23 no CRLF after a chunk": (chunked(b"1\r\n70\r\n\r\n"), {400}),
    "24 a chunk extension with a CR": (chunked(b"1;a\rb\r\n7\r\n0\r\n\r\n"), {400}),
    "24 a chunk extension of 1 MiB": (chunked(b"1;" + b"a" * (1 << 20) + b"\r\n7\r\n0\r\n\r\n"), {400}),
    "25 forbidden trailers": (chunked(b"1\r\n7\r\n0\r\nContent-Length: 5\r\n\r\n"), {400}),
    "26 a hundred thousand chunks": (chunked(b"1\r\n7\r\n" * 100_000 + b"0\r\n\r\n"), {400}),
    "27 no Host": (post(b"7", host=""), {400}),
    "28 two Hosts": (post(b"7", "Host: localhost"), {400}),
    "29 a Host with a path": (post(b"7", host="Host: localhost/x"), {400, 403}),
    "29 a Host with user info": (post(b"7", host="Host: a@localhost"), {400, 403}),
    "30 authority form": (GOOD.replace(b"/predict", b"localhost:80"), {400}),
    "30 asterisk form": (GOOD.replace(b"/predict", b"*"), {400, 404}),
    "31 HTTP/0.9": (b"GET /\r\n\r\n", {400}),
    "31 HTTP/9.9": (GOOD.replace(b"HTTP/1.1", b"HTTP/9.9"), {400, 505}),
    "31 HTTP/1.0 with chunked": (chunked(CHUNKED).replace(b"HTTP/1.1", b"HTTP/1.0"), {400}),
    "32 a method of 10 KB": (b"A" * 10240 + GOOD[4:], {400, 501}),
    "32 a method in lower case": (b"post" + GOOD[4:], {400, 501}),
    "32 CONNECT": (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 405, 501}),
    "32 TRACE": (b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", {405, 501}),
    "33 a path of 100 KB": (GOOD.replace(b"/predict", b"/" + b"a" * 100_000), {414}),
    "34 5,000 headers": (post(b"7", *[f"X-{number}: 1" for number in range(5000)]), {431}),
    "34 101 small headers": (post(b"7", *[f"X-{number}: 1" for number in range(101)]), {431}),
    "35 one header of 8 MB": (post(b"7", "X: " + "a" * (8 << 20)), {431}),
    "35 40 KB of headers": (post(b"7", *[f"X-{number}: " + "a" * 4000 for number in range(10)]), {431}),
    "36 a TLS hello": (bytes.fromhex("16030100f1010000ed0303") + b"\0" * 200, {400}),
    "37 the HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
    "38 Upgrade: h2c": (post(b"7", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"), {400, 200}),
    "42 a gzip body": (post(b"7", "Content-Encoding: gzip"), {415}),
    "43 stacked encodings": (post(b"7", "Content-Encoding: gzip, br"), {415}),
    "46 an encoded way up": (GOOD.replace(b"/predict", b"/%2e%2e%2fpredict"), {404}),
    "46 a double-encoded way up": (GOOD.replace(b"/predict", b"/%252e%252e%252fpredict"), {404}),
    "46 overlong UTF-8": (GOOD.replace(b"/predict", b"/%c0%ae%c0%ae/predict"), {404}),
    "46 a path parameter": (GOOD.replace(b"/predict", b"/..;/predict"), {404}),
    "46 backslashes": (GOOD.replace(b"/predict", b"/..\\predict"), {400, 404}),
    "47 two slashes": (GOOD.replace(b"/predict", b"//evil.example/predict"), {404}),
    "48 NUL in the path": (GOOD.replace(b"/predict", b"/predict%00"), {404}),
    "48 CRLF in the path": (GOOD.replace(b"/predict", b"/predict%0d%0aX: y"), {400, 404}),
    "51 another case": (GOOD.replace(b"/predict", b"/PREDICT"), {404}),
    "51 a trailing slash": (GOOD.replace(b"/predict", b"/predict/"), {404}),
    "139 an evil Host": (post(b"7", host="Host: evil.example"), {403}),
    "139 an evil Origin": (post(b"7", "Origin: http://evil.example"), {403}),
    "139 a null Origin": (post(b"7", "Origin: null"), {403}),
    "139 a look-alike Origin": (post(b"7", "Origin: http://localhost.evil.example"), {403}),
}

ACCEPTED = {
    "a plain request": GOOD,
    "8 a length with blanks after it": post(b"7", "Content-Length: 1\t "),
    "24 a quoted chunk extension": chunked(b'1;a="b"\r\n7\r\n0\r\n\r\n'),
    "30 absolute form": GOOD.replace(b"/predict", b"http://localhost/predict"),
    "31 HTTP/1.0": GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "an encoded letter in the path": GOOD.replace(b"/predict", b"/pr%65dict"),
    "a query string": GOOD.replace(b"/predict", b"/predict?a=1"),
    "one's own Origin": post(b"7", "Origin: http://localhost"),
    "39 a body on GET": get("/v2/health/live", "Content-Length: 3") + b"abc",
    "45 ten thousand ranges": get("/v2/health/live", "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(700))),
    "140 forwarded headers": post(b"7", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: evil", "Forwarded: for=x"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("function") as running:
        yield running
        answer = running.predict(1)
        assert (answer.status_code, answer.json()) == (200, {"got": 1})
        assert running.metric("panglot_requests_in_progress") == 0


@pytest.mark.parametrize(("sent", "allowed"), REFUSED.values(), ids=REFUSED.keys())
def test_hostile_requests_are_refused_at_once(server: Server, sent: bytes, allowed: set[int]) -> None:
    heard = talk(server, sent)
    assert heard.status in allowed, heard.data[:500]
    assert len(heard.statuses) == 1
    if heard.status not in (200, 404, 405):
        assert heard.closed
        assert b"connection: close" in heard.data.lower()
    assert server.predict(3).json() == {"got": 3}


@pytest.mark.parametrize("sent", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_unusual_but_correct_requests_are_served(server: Server, sent: bytes) -> None:
    heard = talk(server, sent)
    assert heard.statuses == [200], heard.data[:500]


def test_pipelined_requests_before_a_broken_one_are_answered(server: Server) -> None:
    heard = talk(server, GOOD * 50 + b"BROKEN\r\n\r\n" + GOOD * 49)
    assert heard.statuses == [200] * 50 + [400]
    assert heard.closed


def test_a_body_longer_than_said_is_the_next_request(server: Server) -> None:
    heard = talk(server, GOOD + b"x" * 20 + b"\r\n\r\n")
    assert heard.statuses == [200, 400]


def test_request_ids_are_opaque_and_bounded(server: Server) -> None:
    for bad in ("x" * 129, "a b", "<script>", "a;b", "caf\xe9"):
        heard = talk(server, post(b"7", f"X-Request-Id: {bad}"))
        assert heard.statuses == [200]
        assert f"x-request-id: {bad}".encode("latin-1") not in heard.data
    heard = talk(server, post(b"7", "X-Request-Id: job-7.2:a@b"))
    assert b"x-request-id: job-7.2:a@b\r\n" in heard.data


def test_unknown_paths_and_methods_are_one_series(server: Server) -> None:
    """Labels come from the code, never from a client."""
    before = len(server.client.get("/metrics").text.splitlines())
    for number in range(300):
        server.client.get(f"/random/{number}")
        server.client.request("PUT", f"/random-{number}?a={number}")
        server.client.request(f"M{'ETHOD'[: number % 5]}", "/predict")
    after = len(server.client.get("/metrics").text.splitlines())
    assert after - before < 10
