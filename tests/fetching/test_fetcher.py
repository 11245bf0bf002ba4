"""Fetching over real sockets: answers of every kind, limits, redirects, names that change their mind."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from panglot.fetching.fetcher import FAILED, OK, REFUSED, STATUS, TIMEOUT, TOO_LARGE, Fetched, Fetcher, FetchLimits
from panglot_worker.net.hosts import Allowed
from support import certificates
from support.scripted import Scripted, dripping, endless, redirect, scripted, silent, simple

LIMITS = FetchLimits(bytes=100_000, connect=20.0, total=30.0)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
ANSWERS = {
    "/plain": simple(b"hello"),
    "/chunked": CHUNKED,
    "/until_close": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "/http10": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "/interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + simple(b"hello"),
    "/empty": simple(b""),
    "/204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "/206": simple(b"part", "206 Partial Content"),
    "/304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "/404": simple(b"<html>no</html>", "404 Not Found"),
    "/503": simple(b'{"error": "busy", "other": 1}', "503 Service Unavailable"),
    "/418": simple(b'{"error": 7}', "418 Teapot"),
    "/599": simple(b"[" * 100_000, "599 Odd"),
    "/html": simple(b"<html>an error page with status 200</html>"),
    "/endless": endless,
    "/dripping": dripping,
    "/silent": silent,
    "/shorter": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
    "/longer": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
    "/declared": b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n",
    "/limit": simple(b"x" * 100_000),
    "/cut_chunk": CHUNKED[:-10],
    "/gzip": simple(gzip.compress(b"\0" * 10_000_000), "200 OK", "Content-Encoding: gzip"),
    "/no_http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "/nothing": b"",
    "/two_lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "/headers": b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 70_000 + b"\r\n" + b"X-B: " + b"b" * 70_000 + b"\r\n\r\n",
    "/switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "/meta": simple(b'<meta http-equiv="refresh" content="0; url=http://127.0.0.1/">'),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with scripted(dict(ANSWERS)) as running:
        yield running


def run(coroutine: Callable[[], Awaitable[Fetched]]) -> Fetched:
    async def inside() -> Fetched:
        return await coroutine()

    return uvloop.run(inside())


def fetch(server: Scripted, path: str, limits: FetchLimits = LIMITS) -> Fetched:
    return run(lambda: Fetcher(limits, Allowed([server.host])).fetch(server.url(path)))


GOOD = {
    "/plain": b"hello",
    "/chunked": b"hello world",
    "/until_close": b"hello",
    "/http10": b"hello",
    "/interim": b"hello",
    "/empty": b"",
    "/204": b"",
    "/html": ANSWERS["/html"],
    "/longer": b"hello",
    "/limit": b"x" * 100_000,
    "/meta": ANSWERS["/meta"],
}


@pytest.mark.parametrize("path", GOOD)
def test_answers_that_count(server: Scripted, path: str) -> None:
    """A page of HTML is bytes as everything is; nobody follows what it says."""
    fetched = fetch(server, path)
    expected = GOOD[path]
    assert fetched.outcome == OK
    assert fetched.body == expected or expected.endswith(fetched.body)
    assert len(fetched.body) > 0 or expected == b""


STATUSES = {
    "/404": (404, "Not Found"),
    "/503": (503, "busy"),
    "/418": (418, "I'm a Teapot"),
    "/599": (599, "Unknown Status"),
    "/unknown": (404, "Not Found"),
}


@pytest.mark.parametrize("path", STATUSES)
def test_what_others_refuse_is_passed_on(server: Scripted, path: str) -> None:
    fetched = fetch(server, path)
    assert (fetched.outcome, fetched.status, fetched.text) == (STATUS, *STATUSES[path])


BROKEN = {
    "/206": FAILED,
    "/304": FAILED,
    "/endless": TOO_LARGE,
    "/declared": TOO_LARGE,
    "/shorter": FAILED,
    "/cut_chunk": FAILED,
    "/gzip": FAILED,
    "/no_http": FAILED,
    "/nothing": FAILED,
    "/two_lengths": FAILED,
    "/headers": FAILED,
    "/switch": FAILED,
}


@pytest.mark.parametrize("path", BROKEN)
def test_answers_that_do_not(server: Scripted, path: str) -> None:
    assert fetch(server, path).outcome == BROKEN[path]


@pytest.mark.parametrize("path", ["/dripping", "/silent"])
def test_the_time_for_all_of_it_is_limited(server: Scripted, path: str) -> None:
    assert fetch(server, path, FetchLimits(total=0.5)).outcome == TIMEOUT


def test_what_is_asked_is_plain(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies in the environment are not asked; no cookies, no credentials, no compression."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:1/")
    before = len(server.requests)
    assert fetch(server, "/plain").outcome == OK
    lines = server.requests[before].split(b"\r\n")
    assert lines[0] == b"GET /plain HTTP/1.1"
    names = {line.partition(b":")[0].lower() for line in lines[1:] if line}
    assert names == {b"host", b"user-agent", b"accept", b"accept-encoding", b"connection"}
    assert b"Accept-Encoding: identity" in lines
    assert f"Host: {server.host}".encode() in lines


# Redirects


def test_redirects(server: Scripted) -> None:
    with scripted({}) as other:
        server.answers |= {f"/r{status}": redirect("/plain", status) for status in (301, 302, 303, 307, 308)}
        server.answers |= {"/r300": simple(b"", "300 Choices", "Location: /plain"), "/bare": simple(b"", "302 Found")}
        server.answers |= {f"/chain{n}": redirect(f"/chain{n - 1}") for n in range(1, 6)} | {"/chain0": simple(b"end")}
        server.answers |= {
            "/loop": redirect("/loop"),
            "/relative": redirect("plain"),
            "/away": redirect(other.url("/")),
        }
        server.answers |= {
            "/file": redirect("file:///etc/passwd"),
            "/login": redirect(f"http://a:b@{server.host}/plain"),
        }
        for status in (301, 302, 303, 307, 308):
            assert fetch(server, f"/r{status}").body == b"hello"
        assert fetch(server, "/relative").body == b"hello"
        assert fetch(server, "/chain3").body == b"end"
        assert fetch(server, "/chain3", FetchLimits(redirects=2)).outcome == REFUSED
        for path in ("/chain4", "/loop", "/bare", "/away", "/file", "/login"):
            assert fetch(server, path).outcome == REFUSED, path
        assert fetch(server, "/r300").outcome == FAILED
        assert other.seen == 0


# Names


def resolver(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """Names lead to each of the answers in turn, and to the last for good."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def look_up(url: str, *answers: list[str], limits: FetchLimits = LIMITS) -> Fetched:
    return run(lambda: Fetcher(limits, Allowed(), resolver(*answers)).fetch(url))


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"], ["::1"], ["93.184.216.34", "127.0.0.1"], ["127.0.0.1", "93.184.216.34"], ["::ffff:127.0.0.1"],
        ["93.184.216.34"] * 99 + ["10.0.0.1"], [], ["fe80::1%2"], ["not an address"],
    ],
)  # fmt: skip
def test_names_that_lead_inside(addresses: list[str]) -> None:
    """Also a name whose alias is localhost: it is what it leads to."""
    assert look_up("http://name.example/", addresses).outcome == REFUSED


def test_a_resolver_that_does_not_answer() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    assert (
        run(lambda: Fetcher(FetchLimits(total=0.3), Allowed(), never).fetch("http://name.example/")).outcome == TIMEOUT
    )


def test_a_name_that_does_not_exist() -> None:
    assert run(lambda: Fetcher(LIMITS, Allowed()).fetch("http://name.invalid/")).outcome == FAILED


def test_connections_are_made_to_the_checked_address_alone(server: Scripted) -> None:
    """The name is looked up once; the connection goes to what was checked, and keeps the name for the server."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    allowed = Allowed([f"models.internal:{server.port}"])
    before = len(server.requests)
    url = f"http://models.internal:{server.port}/plain"
    assert run(lambda: Fetcher(LIMITS, allowed, resolve).fetch(url)).body == b"hello"
    assert asked == ["models.internal"]
    assert f"Host: models.internal:{server.port}".encode() in server.requests[before]


def test_at_most_so_many_at_once(server: Scripted) -> None:
    most = running = 0

    async def resolve(host: str, port: int) -> list[str]:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return ["127.0.0.1"]

    async def all_of_them() -> Fetched:
        fetcher = Fetcher(FetchLimits(at_once=3), Allowed(["127.0.0.1"]), resolve)
        return (await asyncio.gather(*(fetcher.fetch(server.url("/plain")) for _ in range(10))))[-1]

    assert run(all_of_them).outcome == OK
    assert most == 3


# TLS


def test_https_checks_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    certificates.make(tmp_path, "models.internal", "DNS:models.internal")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with scripted({"/": simple(b"secure"), "/down": redirect("http://127.0.0.1/")}) as secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        secure.context = context
        allowed = Allowed(["models.internal", "other.internal", "127.0.0.1"])

        def get(host: str, path: str = "/") -> Fetched:
            fetcher = Fetcher(LIMITS, allowed, resolver(["127.0.0.1"]))
            return run(lambda: fetcher.fetch(f"https://{host}:{secure.port}{path}"))

        assert get("models.internal").body == b"secure"
        assert get("other.internal").outcome == FAILED
        assert get("models.internal", "/down").outcome == REFUSED
