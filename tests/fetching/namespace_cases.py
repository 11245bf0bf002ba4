"""Run by test_namespace.py in a network namespace that has `lo` alone, with more addresses on it.

Listeners stand on everything that must not be reached, and count who comes. One stands on an address of the public
internet, which here leads nowhere else.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
import uvloop

from panglot.fetching.fetcher import OK, REFUSED, Fetched, Fetcher, FetchLimits
from panglot_worker.net.hosts import Allowed
from support.evals import ask, single
from support.scripted import Scripted, redirect, simple
from support.server import Server, serving

PUBLIC, PUBLIC_SIX = "93.184.216.34", "2606:2800:220:1::1"
INNER = (
    "127.0.0.1", "127.0.0.53", "10.0.0.5", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1", "198.18.0.1",
    "192.0.2.1", "203.0.113.5", "::1", "fd00::5", "fd00:ec2::254", "64:ff9b::7f00:1", "2002:7f00:1::1", "fec0::1",
    "2001::1", "2001:db8::5",
)  # fmt: skip
PORTS = (80, 443, 22, 25, 6379, 8080)
CONTENT = b"a picture"
REDIRECTS = (301, 302, 303, 307, 308)
TARGETS = {
    "loopback": "http://127.0.0.1/", "six": "http://[::1]/", "name": "http://localhost/", "inner": "http://inner.test/",
    "metadata": "http://169.254.169.254/latest/", "file": "file:///etc/passwd", "gopher": "gopher://127.0.0.1:6379/",
    "scheme": "ftp://public.test/", "credentials": "http://user:pass@public.test/", "short": "http://127.1/",
    "port": "http://public.test:6379/", "double": "//127.0.0.1/", "backslash": "/\\127.0.0.1/", "loop": "/loop",
}  # fmt: skip


@pytest.fixture(scope="module")
def inner() -> Iterator[list[Scripted]]:
    found = [Scripted({"/": simple(b"secret")}, address, port) for address in INNER for port in PORTS]
    yield found
    for server in found:
        server.close()


@pytest.fixture(scope="module")
def public() -> Iterator[Scripted]:
    answers = {"/": simple(CONTENT), "/meta": simple(b'<meta http-equiv="refresh" content="0; url=http://127.0.0.1/">')}
    answers |= {f"/{status}/{name}": redirect(to, status) for name, to in TARGETS.items() for status in REDIRECTS}
    answers |= {"/good": redirect("http://public.test/"), "/loop": redirect("/loop"), "/four/0": simple(CONTENT)}
    answers |= {f"/four/{n}": redirect(f"/four/{n - 1}") for n in range(1, 6)}
    server = Scripted(answers, PUBLIC, 80)
    six = Scripted(answers, PUBLIC_SIX, 80)
    yield server
    server.close()
    six.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Proxies in the environment lead to the forbidden."""
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:8080/")
    with serving("evals_rows", env=proxies) as running:
        yield running


SPELLINGS = (
    "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0",
    "0.0.0.0", "127.0.0.53", "①②⑦.0.0.1", "127。0。0。1",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::1]", "[::1%25lo]", "[fe80::1%25lo]", "[fec0::1]", "[2001::1]", "[fd00::5]", "[fd00:ec2::254]",
    "10.0.0.5", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.64.0.1", "198.18.0.1", "192.0.2.1", "203.0.113.5",
    "224.0.0.1", "255.255.255.255", "[ff02::1]", "[2001:db8::5]", "inner.test", "mixed.test", "alias.test",
    "user@127.0.0.1", "public.test@127.0.0.1", "public.test\\@127.0.0.1", "public.test#@127.0.0.1", "127.0.0.1\t",
    "127.0.0.1\n", "127.0.0.1\0", "public.test\0.127.0.0.1", "xn--bcher-kva.test",
)  # fmt: skip
FORMS = ("http://{}/", "https://{}/", "http://{}:22/", "http://{}:6379/", "http://{}:8080/", "http://{}:25/x")
OTHERS = (
    "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_x", "javascript:x", "//127.0.0.1/", "dict://127.0.0.1:6379/",
    "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", "http://127.0.0.1:/", "http:/127.0.0.1/",
    "http:127.0.0.1", "http:///127.0.0.1/", "http://public.test:8080/", "http://public.test:6379/", "HTTP://127.0.0.1/",
    "http://127.0.0.1/" + "a" * (1 << 20), "unix:///var/run/docker.sock", " http://127.0.0.1/", "http://\n127.0.0.1/",
)  # fmt: skip


def refused(server: Server, uri: str) -> bool:
    answer = ask(server, {"data": {"uri": uri}})
    return answer.status_code == 599 and answer.json()["error"] in ("the uri cannot be read", "not supported")


def test_nothing_inside_is_reached(server: Server, inner: list[Scripted]) -> None:
    for host, form in itertools.product(SPELLINGS, FORMS):
        assert refused(server, form.format(host)), form.format(host)
    for uri in OTHERS:
        assert refused(server, uri), uri[:80]
    assert sum(listener.seen for listener in inner) == 0


def test_redirects_lead_nowhere_inside(server: Server, inner: list[Scripted], public: Scripted) -> None:
    for name, status in itertools.product(TARGETS, REDIRECTS):
        assert refused(server, f"http://public.test/{status}/{name}"), (name, status)
    assert refused(server, "http://public.test/four/4")
    assert public.seen > len(TARGETS) * len(REDIRECTS)
    assert sum(listener.seen for listener in inner) == 0


def test_what_is_public_is_fetched(server: Server, inner: list[Scripted], public: Scripted) -> None:
    for uri in ("http://public.test/", f"http://{PUBLIC}/", f"http://[{PUBLIC_SIX}]/", "http://public.test/good"):
        answer = ask(server, {"data": {"uri": uri}})
        assert answer.status_code == 200, (uri, answer.text)
        assert answer.json()["result"]["body"] == [CONTENT.decode()]
    assert ask(server, {"data": {"uri": "http://public.test/four/3"}}).status_code == 200
    assert "meta" in ask(server, {"data": {"uri": "http://public.test/meta"}}).json()["result"]["body"][0]
    assert sum(listener.seen for listener in inner) == 0


def test_a_name_that_changes_its_mind(inner: list[Scripted], public: Scripted) -> None:
    """Public when it is first looked up, 127.0.0.1 ever after: each look-up is checked, each connection goes there."""
    for answers, outcome in (([PUBLIC, "127.0.0.1"], REFUSED), ([PUBLIC, PUBLIC], OK)):
        left = list(answers)

        async def resolve(host: str, port: int, left: list[str] = left) -> list[str]:
            return [left.pop(0)] if len(left) > 1 else left

        async def run(path: str, resolve: object = resolve) -> Fetched:
            return await Fetcher(FetchLimits(), Allowed(), resolve).fetch(f"http://rebinding.test{path}")  # type: ignore[arg-type]

        before = public.seen
        public.answers["/again"] = redirect("http://rebinding.test/")
        assert uvloop.run(run("/again")).outcome == outcome
        assert public.seen == before + (2 if outcome == OK else 1)
    assert sum(listener.seen for listener in inner) == 0


def test_the_rest_of_the_server_is_not_harmed(server: Server) -> None:
    assert ask(server, single()).status_code == 200
    assert len(server.workers()) == 1
    assert server.metric("panglot_fetches_total", outcome="refused") > 100
    assert os.path.exists(f"/proc/{server.process.pid}")
