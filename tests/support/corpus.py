"""Bad and strange bodies, as data: what is sent, what may be answered, and how it is run."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import crowd
from support.interpreters import bare
from support.server import Server, serving
from support.traffic import times
from support.wire import Reply, Wire

SOON = 20.0
"""Seconds within which anything is answered, even a body of many megabytes on a busy machine."""

MATES = 7


@dataclass(frozen=True)
class Case:
    """One body. `got` is what the script tells about it when it is accepted."""

    body: Callable[[], bytes]
    statuses: frozenset[int]
    content_type: str = "application/json"
    got: Any = ...
    heavy: bool = False


def accepted(body: bytes | Callable[[], bytes], got: Any = ..., **options: Any) -> Case:
    return _case(body, {200}, got=got, **options)


def refused(body: bytes | Callable[[], bytes], *statuses: int, **options: Any) -> Case:
    return _case(body, set(statuses) or {400}, **options)


def _case(body: bytes | Callable[[], bytes], statuses: set[int], **options: Any) -> Case:
    return Case((lambda: body) if isinstance(body, bytes) else body, frozenset(statuses), **options)


def request(case: Case) -> bytes:
    body = case.body()
    kind = f"Content-Type: {case.content_type}\r\n" if case.content_type else ""
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("utf-8") + body


@dataclass(frozen=True)
class Pair:
    """Two servers of one package: with orjson in the worker, and with the standard library alone."""

    fast: Server
    standard: Server


@contextlib.contextmanager
def pair(package: str, folder: Path, *flags: str) -> Iterator[Pair]:
    with serving(package, *flags) as fast, serving(package, *flags, "--python", bare(folder)) as standard:
        yield Pair(fast, standard)
        for server in (fast, standard):
            assert server.metric("panglot_worker_restarts_total") == 0
            assert server.metric("panglot_request_memory_bytes") == 0
    for server in (fast, standard):
        assert "Traceback" not in server.log


def meaning(reply: Reply) -> Any:
    """What an answer says, without what differs from one to the next."""
    value = json.loads(reply.body)
    if "error" in value:
        del value["error"]["request_id"]
    return value


def check_alone(servers: Pair, case: Case) -> None:
    """Answered as allowed, the same with and without orjson, again and again."""
    sent = request(case)
    heard = []
    for server in (servers.fast, servers.standard):
        with Wire(server, patience=SOON) as client:
            client.send(sent)
            reply = client.reply()
        assert reply.status in case.statuses, reply
        if reply.status == 200 and case.got is not ...:
            assert json.loads(reply.body)["got"] == case.got, reply
        heard.append((reply.status, meaning(reply)))
    assert heard[0] == heard[1], heard
    if not case.heavy:
        check_loop(servers.fast, sent, case)


def check_loop(server: Server, sent: bytes, case: Case) -> None:
    count = times(100, 1000)
    client = Wire(server, patience=SOON)
    for _ in range(count):
        client.send(sent)
        reply = client.reply()
        assert reply.status in case.statuses, reply
        if reply.headers.get("connection") == "close":
            client.close()
            client = Wire(server, patience=SOON)
    client.close()


def check_in_a_batch(server: Server, case: Case) -> None:
    """Sent together with good requests, which all succeed, in one batch when it reaches the script at all."""

    async def story() -> tuple[Reply | None, list[Reply | None]]:
        guests = await crowd.arrive(server, 1 + MATES)
        await guests[0].send(request(case))
        good = [accepted(b"%d" % number) for number in range(MATES)]
        await crowd.together([guest.send(request(mate)) for guest, mate in zip(guests[1:], good, strict=True)])
        bad, *mates = await crowd.together([guest.reply(SOON) for guest in guests])
        await crowd.leave(guests)
        return bad, mates

    bad, mates = asyncio.run(story())
    assert bad is not None
    assert bad.status in case.statuses, bad
    answers = [json.loads(mate.body) for mate in mates if mate and mate.status == 200]
    assert [answer["got"] for answer in answers] == list(range(MATES)), mates


def named(cases: Mapping[str, Case]) -> dict[str, Any]:
    """For `pytest.mark.parametrize`."""
    return {"argnames": "case", "argvalues": list(cases.values()), "ids": list(cases)}
