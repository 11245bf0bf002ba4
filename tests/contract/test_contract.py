"""One suite over all dialects: what a platform's clients rely on, when all is well and when it is not.

`table.py` holds what is expected, a row per platform; every test here runs over all rows.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from contract.desk import BEARER, TOKEN, Desk, Opener, Way, unpack
from contract.platform import ID, TEXT, Asked, Form, Platform
from contract.table import JSON, PLATFORMS, RETRY
from panglot import dialects
from support.server import Server, serving, wait_until
from support.traffic import AT_ONCE, Gate
from support.two_fronts import FRONTS
from support.wire import Wire

WAYS: dict[str, Way] = {"processes": serving}
"""How servers are started; one that is added has every test run over all platforms once more."""
LARGEST = 4096
SHARED = ("--max-body", str(LARGEST), "--queue", "8", "--slots", "4", "--on-leave", "interrupt", "--jobs-queued", "8")


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


FOREIGN = pytest.mark.rest("its workers need an environment of their own")
ROWS = [
    pytest.param(platform, id=platform.name, marks=[FOREIGN] if platform.python is not None else [])
    for platform in PLATFORMS
]


@pytest.fixture(scope="module", params=ROWS)
def platform(request: pytest.FixtureRequest) -> Platform:
    return request.param


@pytest.fixture(scope="module")
def opener(platform: Platform, way: Way, tmp_path_factory: pytest.TempPathFactory) -> Opener:
    folder = tmp_path_factory.mktemp(platform.name)
    unpack(platform, folder)
    return Opener(platform, way, folder)


@pytest.fixture(scope="module")
def desk(opener: Opener) -> Iterator[Desk]:
    """A server for the tests that do it no harm."""
    with opener(*SHARED, env={"PANGLOT_TOKEN": TOKEN}) as shared:
        yield shared


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()


def test_every_dialect_has_a_row() -> None:
    rows = {platform.name.partition("_")[0] for platform in PLATFORMS}
    assert dialects.known().keys() <= rows, "write the missing row into table.py"


def test_health(desk: Desk) -> None:
    """Probes need no token."""
    assert Form(200, JSON, {"live": True}).fits(desk.get("/v2/health/live"))
    assert Form(200, JSON, {"ready": True}).fits(desk.get("/v2/health/ready"))
    for path, form in desk.platform.health.items():
        assert form.fits(desk.get(path)), path


def test_a_request_and_its_id(desk: Desk) -> None:
    """Every path of the platform is answered, and says whose answer it is."""
    asked = desk.platform.ask({"id": 3})
    for path in (asked.path, *desk.platform.other_paths):
        answer = desk.send(replace(asked, path=path))
        assert desk.right(3, answer), path
        assert "total;dur=" in answer.headers["server-timing"]
    if desk.platform.id_header:
        answer = desk.send(asked, {**BEARER, "x-request-id": "", desk.platform.id_header: "of-the-platform"})
        assert answer.headers[desk.platform.id_header] == "of-the-platform"


def test_401(desk: Desk) -> None:
    """The token is asked for before anything else; what the platform's gateway took opens nothing, and does no harm."""
    wrong = {"authorization": "Bearer wrong"}
    for headers in ({}, wrong, desk.platform.credentials):
        answer = desk.ask({"id": 1}, headers)
        assert desk.platform.unauthorized.fits(answer)
        assert answer.headers["www-authenticate"] == "Bearer"
    beside = {**desk.platform.credentials, **BEARER}
    assert desk.right(1, desk.ask({"id": 1}, beside))


def test_413(desk: Desk) -> None:
    """A body that says it is too large, and one that only turns out to be."""
    asked = replace(desk.platform.ask({"id": 1}), body=b"x" * (LARGEST + 1))
    headers = {"content-type": asked.type, "x-request-id": ID, **BEARER}
    assert desk.platform.too_large.fits(desk.send(asked))
    assert desk.platform.too_large.fits(desk.client.post(asked.path, content=iter([asked.body]), headers=headers))
    assert desk.right(1, desk.ask({"id": 1}))


def test_timeout(desk: Desk, gate: Gate) -> None:
    """Whoever waits no longer is told so; nobody else is harmed."""
    plug = {"id": 1, "op": "wait", "gate": str(gate)}
    assert desk.platform.timeout.fits(desk.ask(plug, {**BEARER, "x-timeout-ms": "200"}))
    gate.open()
    assert desk.right(2, desk.ask({"id": 2}))
    assert desk.server.metric("panglot_worker_restarts_total") == 0


def test_a_call_that_nobody_waits_for_ends(desk: Desk, gate: Gate) -> None:
    """The gate stays closed, where the dialect can end calls: the script would wait for it for ever."""
    mark, workers = len(desk.server.lines), {worker.pid for worker in desk.server.workers()}
    asked = desk.platform.ask({"id": 7, "op": "wait", "gate": str(gate)})
    lines = (f"POST {asked.path} HTTP/1.1", f"host: 127.0.0.1:{desk.server.port}", f"content-type: {asked.type}")
    head = "\r\n".join((*lines, f"authorization: Bearer {TOKEN}", f"content-length: {len(asked.body)}", "", ""))
    with socket.create_connection(("127.0.0.1", desk.server.port)) as connection:
        connection.sendall(head.encode() + asked.body)
        desk.server.wait_log("order 7 waits", after=mark)
    if desk.platform.goes_on:
        gate.open()
    assert desk.right(3, desk.ask({"id": 3}))
    assert {worker.pid for worker in desk.server.workers()} == workers, "its worker serves on"


@pytest.mark.parametrize("act", ["", "fail"])
def test_a_job(desk: Desk, act: str) -> None:
    """Any request can be a job; its result is what a client that waits for its end hears."""
    submitted = desk.ask({"id": 8, **({"op": act} if act else {})}, {**BEARER, "prefer": "respond-async"})
    assert submitted.status_code == desk.platform.accepted, submitted.text
    assert submitted.headers["x-panglot-durable"] == "false"
    job = submitted.headers["location"]
    wait_until(lambda: desk.server.client.get(job).json()["ended"])
    answer = desk.server.client.get(f"{job}/result", headers={"x-request-id": ID})
    expected = desk.platform.failed if act else desk.platform.answer(8, 16)
    assert desk.platform.of_job(expected).fits(answer)


def test_nan(desk: Desk) -> None:
    """What JSON has no word for: null and a warning, or what the platform made of it."""
    assert desk.platform.nan.fits(desk.ask({"id": 1, "op": "nan"}))


def test_a_result_that_cannot_be_sent(desk: Desk) -> None:
    """The log names the function with its file and line, the place in the result and the fix, and no frames of ours."""
    if not desk.platform.encodes:
        pytest.skip("the script writes its result itself")
    # Twice: once the first line is here, so are all lines of earlier tests, with the ends of their tracebacks.
    for _ in range(2):
        mark = len(desk.server.lines)
        desk.ask({"id": 5, "op": "unsendable"})
        desk.server.wait_log(r"/\w+\.py:\d+: \w+: the result cannot be sent: .*\(fix: return ", after=mark)
    assert desk.right(6, desk.ask({"id": 6}))
    assert not [said for said in desk.server.lines[mark:] if "panglot_worker" in said or "Traceback" in said]


def test_unknown_routes(desk: Desk) -> None:
    """The platform's words for what it does not have, and ours under /v2."""
    posted = [] if desk.platform.takes_any_path else [desk.send(Asked("/nowhere", b"{}"))]
    for answer in (desk.get("/nowhere"), *posted):
        assert desk.platform.unknown.fits(answer)
    wrong = desk.get(desk.platform.ask({"id": 1}).path, desk.platform.other_method)
    assert desk.platform.wrong_method.fits(wrong)
    assert "POST" in wrong.headers["allow"]
    assert Form(404, JSON, {"error": TEXT}).fits(desk.get("/v2/nowhere"))


def test_the_error_body(desk: Desk) -> None:
    """What the script raised is told where the platform tells it, and nowhere else; the log has it always."""
    mark = len(desk.server.lines)
    answer = desk.ask({"id": 1, "op": "fail"})
    assert desk.platform.failed.fits(answer)
    assert ("a secret of the script" in answer.text) == desk.platform.tells_why
    desk.server.wait_log("a secret of the script", after=mark)
    if desk.platform.broken is not None:
        assert desk.platform.undecodable is not None
        assert desk.platform.undecodable.fits(desk.send(desk.platform.broken))


def test_a_bad_item_among_others(desk: Desk, gate: Gate) -> None:
    """One that the script fails on and one that cannot be read cost the others nothing, in one call or in many."""
    mark = len(desk.server.lines)
    good = {place: desk.platform.ask({"id": place}) for place in (0, 2, 4)}
    bad = desk.platform.ask({"id": 1, "op": "fail"})
    broken = desk.platform.broken or bad
    answers = desk.together(gate, [good[0], bad, good[2], broken, good[4]])
    for place in good:
        assert desk.right(place, answers[place])
    assert desk.platform.failed.fits(answers[1])
    assert (desk.platform.undecodable or desk.platform.failed).fits(answers[3])
    if desk.platform.batches:
        desk.server.wait_log("a call with 4", after=mark)


def test_a_full_queue(desk: Desk, gate: Gate) -> None:
    """Beyond what may wait, newcomers are told to come again; all who wait are answered."""
    waiting = [desk.occupy(gate)]
    while not waiting[-1].done():
        assert len(waiting) < 50, "nobody was refused"
        waiting.append(desk.later(desk.platform.ask({"id": len(waiting)})))
        wait_until(lambda: waiting[-1].done() or desk.in_progress() == len(waiting))
    gate.open()
    full = replace(desk.platform.queue_full, headers=RETRY)
    refused = 0
    for number, future in zip((1000, *range(1, 50)), waiting, strict=False):
        answer = future.result(AT_ONCE)
        if answer.status_code == full.status:
            assert full.fits(answer)
            refused += 1
        else:
            assert desk.right(number, answer)
    # With several fronts, the one before the last may have been counted in for a moment, until no front took it.
    assert 1 <= refused <= 2


def test_a_life_from_loading_to_draining(opener: Opener, gate: Gate, tmp_path: Path) -> None:
    """The port is open before the model is there; deaths cost who caused them; who was accepted is answered at the end.

    All of it with one server: starts are what this suite takes its time for.
    """
    model = Gate(tmp_path / "model")
    with opener.loading_after(model), opener(ready=False) as desk:
        waiting = is_loading(desk)
        model.open()
        desk.server.wait_ready()
        assert all(desk.right(1, future.result(AT_ONCE)) for future in waiting)
        survives_a_death(desk, Gate(tmp_path / "death"))
        refuses_what_is_poisonous(desk)
        is_drained(desk, gate)
        assert desk.server.process.wait(AT_ONCE) == 0
        desk.server.stop()


def survives_a_death(desk: Desk, gate: Gate) -> None:
    """The request that ends its worker is told so; those that came with it are answered."""
    requests = [desk.platform.ask({"id": id}) for id in range(4)]
    requests[1] = desk.platform.ask({"id": 1, "op": "die"})
    answers = desk.together(gate, requests)
    assert desk.platform.died.fits(answers[1])
    for place in (0, 2, 3):
        assert desk.right(place, answers[place])


def refuses_what_is_poisonous(desk: Desk) -> None:
    """A request that ends every worker it meets is soon refused without a try."""
    before = desk.deaths()
    poison = {"id": 2, "op": "die"}
    assert desk.platform.died.fits(desk.ask(poison))
    for _ in range(2):
        assert desk.platform.poisonous.fits(desk.ask(poison))
    assert desk.right(2, desk.ask({"id": 2}))
    assert desk.deaths() == before + 3


def is_loading(desk: Desk) -> list[Future[httpx.Response]]:
    """Alive, not ready, and requests are told to come again; those that are jobs wait, and are given back."""
    assert desk.get("/v2/health/live").status_code == 200
    assert not_ready("loading").fits(desk.get("/v2/health/ready"))
    for path, form in {**desk.platform.health, **desk.platform.not_ready}.items():
        assert form.fits(desk.get(path)), path
    if desk.platform.stores_jobs:
        return [desk.later(desk.platform.ask({"id": 1}))]
    assert replace(desk.platform.loading, headers=RETRY).fits(desk.ask({"id": 1}))
    return []


def is_drained(desk: Desk, gate: Gate) -> None:
    """Whoever is there is answered, probes learn that it ends, and nobody else gets in."""
    pages = {**desk.platform.health, **desk.platform.not_ready, **desk.platform.leaving}
    pages["/v2/health/ready"] = not_ready("draining")
    forms = {written("GET", Asked(path, b"")): form for path, form in pages.items()}
    forms[written("POST", desk.platform.ask({"id": 5}))] = desk.platform.draining or desk.platform.answer(5, 10)
    with ExitStack() as stack:
        wires = [(stack.enter_context(Wire(desk.server)), text, form) for text, form in forms.items()]
        for wire, text, _ in wires:
            # An idle connection would be closed after a second.
            wire.send(text[:4])
        running = desk.occupy(gate)
        desk.server.process.send_signal(signal.SIGTERM)
        # Of several fronts, one may not have read the first bytes of a connection that it has just got. It answers all
        # the same, for an idle connection is closed after a second.
        found = desk.server.wait_log(r"stopping; (\d+) requests? to finish")
        begun = len(wires) + 1
        assert int(found[1]) in (range(1, begun + 1) if FRONTS else (begun,))
        for wire, text, _ in wires:
            wire.send(text[4:])
        wait_until(lambda: is_closed(desk.server))
        gate.open()
        for wire, _, form in wires:
            reply = wire.reply()
            assert form.fits(httpx.Response(reply.status, headers=reply.headers, content=reply.body))
            assert reply.headers["connection"] == "close"
        assert desk.right(1000, running.result(AT_ONCE))


def is_closed(server: Server) -> bool:
    """Whether new connections are refused; for a moment before that the kernel takes them, and nobody answers."""
    try:
        socket.create_connection(("127.0.0.1", server.port), 0.2).close()
    except ConnectionRefusedError:
        return True
    except TimeoutError:
        pass
    return False


def not_ready(state: str) -> Form:
    return Form(503, JSON, {"ready": False, "state": state}, RETRY)


def written(method: str, asked: Asked) -> bytes:
    """A request as it goes over the wire."""
    lines = (f"Content-Type: {asked.type}", f"X-Request-Id: {ID}", f"Content-Length: {len(asked.body)}")
    head = (f"{method} {asked.path} HTTP/1.1", "Host: localhost", *lines, "", "")
    return "\r\n".join(head).encode() + asked.body
