"""Fetching as a part of serving: workers stay free, clients may leave, limits hold, bytes are counted."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.evals import GOOD, ask, package, result, returning, single
from support.raw import post
from support.scripted import Scripted, scripted, simple
from support.server import Server, serving, wait_until


class Gate:
    """Answers of a server that wait until a test lets them go."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.left = threading.Semaphore(0)

    def __call__(self, connection: socket.socket) -> None:
        self.arrived.release()
        connection.settimeout(0.02)
        while not self.open.is_set():
            try:
                if not connection.recv(1):
                    self.left.release()
                    return
            except TimeoutError:
                continue
        connection.settimeout(5)
        connection.sendall(simple(b"let go"))


@pytest.fixture(scope="module")
def other() -> Iterator[Scripted]:
    answers = {"/a": simple(b"one"), "/b": simple(b"two"), "/404": simple(b'{"error": "gone"}', "404 Not Found")}
    with scripted({**answers, "/large": simple(b"x" * 50_000)}) as running:
        yield running


@pytest.fixture(scope="module")
def server(other: Scripted) -> Iterator[Server]:
    with serving("evals_rows", "--url-allow", other.host, "--fetch-bytes", "40000") as running:
        yield running


def named(*uris: str) -> dict[str, object]:
    return {"data": [{"uri": uri} for uri in uris]} if len(uris) > 1 else {"data": {"uri": uris[0]}}


@contextlib.contextmanager
def asked(server: Server, *uris: str) -> Iterator[None]:
    """A client that has sent a request, and leaves at the end without an answer."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(post(json.dumps(named(*uris)).encode(), path="/v1/eval"))
        yield


def test_what_addresses_lead_to_reaches_the_script(server: Server, other: Scripted) -> None:
    assert result(server, named(other.url("/a")))["body"] == ["one"]
    seen = result(server, {"data": [{"uri": other.url("/a")}, single(b"own")["data"], {"uri": other.url("/b")}]})
    assert seen["body"] == ["one", "own", "two"]
    assert all(seen["uri"]), "each is the path of a file"
    assert len(set(seen["uri"])) == 3
    batch = ask(server, [named(other.url("/b")), single(b"own"), named(other.url("/a"))], "/v1/batch").json()
    assert [ret["result"]["body"] for ret in batch] == [["two"], ["own"], ["one"]]


def test_an_address_named_twice_is_fetched_once(server: Server, other: Scripted) -> None:
    before = other.seen
    assert result(server, named(other.url("/a"), other.url("/a")))["body"] == ["one", "one"]
    assert other.seen == before + 1


def test_all_addresses_of_a_request_are_fetched_at_once(server: Server, other: Scripted) -> None:
    """Three answers that wait for one another."""
    together = threading.Barrier(3)

    def answer(connection: socket.socket) -> None:
        together.wait(20)
        connection.sendall(simple(b"met"))

    other.answers |= {f"/met/{n}": answer for n in range(3)}
    assert result(server, named(*(other.url(f"/met/{n}") for n in range(3))))["body"] == ["met"] * 3


def test_the_worker_is_free_meanwhile(server: Server, other: Scripted) -> None:
    gate = Gate()
    other.answers["/gate"] = gate
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, named(other.url("/gate")))))
    thread.start()
    assert gate.arrived.acquire(timeout=20)
    for _ in range(20):
        assert ask(server, single()).status_code == 200
    gate.open.set()
    thread.join(20)
    assert answers[0].json()["result"]["body"] == ["let go"]


def test_a_client_that_leaves_ends_the_fetch(server: Server, other: Scripted) -> None:
    gate = Gate()
    other.answers["/left"] = gate
    before = server.metric("panglot_item_codes_total", code="0")
    with asked(server, other.url("/left")):
        # A server that is told of the end with the request may never fetch.
        assert gate.arrived.acquire(timeout=20)
    assert gate.left.acquire(timeout=20)
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
    assert server.metric("panglot_item_codes_total", code="0") == before
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_the_deadline_ends_the_fetch(server: Server, other: Scripted) -> None:
    gate = Gate()
    other.answers["/late"] = gate
    answer = ask(server, named(other.url("/late")), headers={"x-timeout-ms": "1500"})
    assert answer.status_code == 504
    assert gate.left.acquire(timeout=20)


def test_statuses_of_others_are_passed_on(server: Server, other: Scripted) -> None:
    answer = ask(server, named(other.url("/404")))
    assert (answer.status_code, answer.json()) == (404, {"error": "gone"})
    answer = ask(server, named(other.url("/a"), other.url("/nothing")))
    assert (answer.status_code, answer.json()) == (404, {"error": "Not Found"})


def test_statuses_of_others_are_no_codes_of_the_script(tmp_path: Path, other: Scripted) -> None:
    folder = package(tmp_path, returning(GOOD % 1), panglot__toml="[evals]\nplatform_codes = true\n")
    with serving(folder, "--url-allow", other.host) as strict:
        assert ask(strict, named(other.url("/404"))).status_code == 404


def test_refused_and_unreachable_look_alike(server: Server, other: Scripted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    texts = {
        (answer.status_code, answer.text)
        for uri in ("http://10.0.0.1/", f"http://127.0.0.1:{port}/", "http://name.invalid/", "http://localhost/")
        for answer in [ask(server, named(uri))]
    }
    assert texts == {(599, '{"error": "the uri cannot be read"}')}
    server.wait_log("10.0.0.1/: refused: 10.0.0.1 is not, or not only, in the public internet")


def test_limits(server: Server, other: Scripted) -> None:
    assert ask(server, named(other.url("/large"))).status_code == 413
    many = [other.url(f"/a?{n}") for n in range(17)]
    answer = ask(server, [named(uri) for uri in many], "/v1/batch")
    assert (answer.status_code, answer.json()) == (400, {"error": "a request may name at most 16 addresses"})


def test_what_is_held_is_counted(other: Scripted) -> None:
    with serving("evals_rows", "--url-allow", other.host, "--request-memory", "20000") as small:
        answer = ask(small, named(other.url("/large")))
        assert answer.status_code == 503
        assert ask(small, named(other.url("/a"))).status_code == 200
        wait_until(lambda: small.metric("panglot_request_memory_bytes") == 0)
        assert small.metric("panglot_fetches_total", outcome="no_room") == 1


def test_parts_that_wait_for_others_are_held(server: Server, other: Scripted) -> None:
    """And are let go with the client."""
    gate = Gate()
    other.answers |= {"/last": gate, "/first": simple(b"x" * 30_000)}
    with asked(server, other.url("/first"), other.url("/last")):
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 30_000)
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_a_rerun_does_not_fetch_again(tmp_path: Path, other: Scripted) -> None:
    """The worker dies in the call: the call is run once more, with the bytes it had."""
    before = "import os, signal\n\n\ndef once(req):\n    body = req['data']['body'].decode()\n"
    before += f"    path = {str(tmp_path / 'died')!r}\n    if body == 'one' and not os.path.exists(path):\n"
    before += "        open(path, 'w').close()\n        os.kill(os.getpid(), signal.SIGKILL)\n    return body"
    with serving(
        package(tmp_path / "package", returning(GOOD % "once(req)", before)), "--url-allow", other.host
    ) as small:
        seen = other.seen
        assert result(small, named(other.url("/a"))) == "one"
        assert other.seen == seen + 1
        assert (tmp_path / "died").exists()


def test_a_worker_that_dies_elsewhere_does_not_cost_the_fetch(server: Server, other: Scripted) -> None:
    gate = Gate()
    other.answers["/through"] = gate
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, named(other.url("/through")))))
    thread.start()
    assert gate.arrived.acquire(timeout=20)
    server.workers()[0].kill()
    time.sleep(0.1)
    gate.open.set()
    thread.join(20)
    assert answers[0].json()["result"]["body"] == ["let go"]


def test_fetches_are_counted(server: Server, other: Scripted) -> None:
    outcomes = {
        "ok": named(other.url("/a")),
        "refused": named("http://10.0.0.1/"),
        "failed": named("http://name.invalid/"),
        "status": named(other.url("/404")),
        "too_large": named(other.url("/large")),
    }
    for outcome, asked in outcomes.items():
        before = server.metric("panglot_fetches_total", outcome=outcome)
        ask(server, asked)
        assert server.metric("panglot_fetches_total", outcome=outcome) == before + 1, outcome
    ask(server, [named(other.url(f"/a?{n}")) for n in range(17)], "/v1/batch")
    assert server.metric("panglot_fetches_total", outcome="too_many") > 0
