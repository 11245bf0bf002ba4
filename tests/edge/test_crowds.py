"""More clients than there is room for."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from panglot.web.http1.exchange import Exchange
from support import crowd
from support.after import measure, unharmed
from support.raw import post
from support.server import Server, serving, wait_until
from support.traffic import Gate, answers, occupy, times
from support.wire import Reply, Wire

GOOD = post(b"7")
LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def ask_once(server: Server, request: bytes) -> Reply | None:
    (guest,) = await crowd.arrive(server, 1)
    await guest.send(request)
    reply = await guest.reply()
    await crowd.leave([guest])
    return reply


def test_a_flood_of_connections() -> None:
    """Beyond the limit health still answers, everything else gets 503; when the flood ends, all is well."""

    async def story(server: Server) -> None:
        guests = await crowd.arrive(server, 49)
        refused = await ask_once(server, GOOD)
        flood = await crowd.arrive(server, 200)
        for _ in range(20):
            healthy = await ask_once(server, LIVE)
            assert healthy is not None
            assert healthy.status == 200
            refused = await ask_once(server, GOOD)
            assert refused is not None
            assert (refused.status, refused.headers["connection"]) == (503, "close")
            assert int(refused.headers["retry-after"]) >= 1
            await asyncio.sleep(0.05)
        # Those within the limit are served as ever.
        await guests[0].send(GOOD)
        served = await guests[0].reply()
        assert served is not None
        assert served.status == 200
        turned_away = await crowd.together([guest.reply() for guest in flood[1:-16]])
        assert {reply.status for reply in turned_away if reply} == {503}
        await crowd.leave((*guests, *flood))

    with serving("function", "--max-connections", "50", "--header-timeout", "60s") as server:
        server.client.close()
        asyncio.run(story(server))
        server.client = server.new_client()
        wait_until(lambda: server.predict(7).status_code == 200)
        with unharmed(server, 7, {"got": 7}):
            pass


def test_the_queue_overflows(tmp_path: Path) -> None:
    """Of a thousand keep-alive clients as many are accepted as the queue holds, and every one of those is
    answered; the rest get 503 with a number in Retry-After at once, before any accepted one is answered."""
    clients, places = 1000, 256

    async def story(server: Server, gate: Gate) -> None:
        guests = await crowd.arrive(server, clients)
        for guest in guests:
            await guest.send(LIVE)
        assert all(reply and reply.status == 200 for reply in await crowd.together([g.reply() for g in guests]))
        await crowd.together([guest.send(ask(number)) for number, guest in enumerate(guests)])
        waiting = {asyncio.ensure_future(guest.reply()): number for number, guest in enumerate(guests)}
        while len(refused := [future for future in waiting if future.done()]) < clients - places:
            await asyncio.sleep(0.01)
        for future in refused:
            reply = future.result()
            assert reply is not None
            assert reply.status == 503
            assert 1 <= int(reply.headers["retry-after"]) <= 30
            assert "connection" not in reply.headers
        assert await crowd.in_thread(server.metric, "panglot_queue_length") == places
        assert len(refused) == clients - places
        gate.open()
        for future in waiting.keys() - set(refused):
            reply = await future
            assert reply is not None
            assert (reply.status, json.loads(reply.body)["id"]) == (200, waiting[future])
        await again(guests)
        await crowd.leave(guests)

    async def again(guests: list[crowd.Guest]) -> None:
        """Every connection is still good; a second wave splits into answers and refusals, none lost."""
        await crowd.together([guest.send(ask(number)) for number, guest in enumerate(guests)])
        replies = await crowd.together([guest.reply() for guest in guests])
        counts = Counter(reply.status if reply else 0 for reply in replies)
        assert counts.keys() <= {200, 503}
        assert counts[200] >= places

    def ask(number: int) -> bytes:
        return post(json.dumps({"id": number}).encode())

    crowd.make_room(clients)
    with (
        serving("fault_script/single.py", "--max-connections", "1100", "--queue", "256", "--timeout", "100s") as server,
        unharmed(server, {"id": 1}, {"id": 1, "twice": 2}),
    ):
        gate = Gate(tmp_path / "gate")
        plug = occupy(server, gate, 4)
        time.sleep(0.1)
        asyncio.run(story(server, gate))
        assert answers(server, [plug])[0].status == 200
        refused = server.metric("panglot_requests_total", route="/predict", status="503")
        assert server.metric("panglot_dropped_total", reason="queue_full") == refused


def test_many_large_bodies() -> None:
    """Bodies beyond the byte budget get 503 with Retry-After; memory stays near the budget and returns."""
    size, budget, uploads = 4_000_000, 24_000_000, times(60, 200)
    request = post(b" " * (size - 1) + b"7")

    async def upload(guest: crowd.Guest) -> int:
        await guest.send(request[: size // 2])
        await asyncio.sleep(0.5)
        await guest.send(request[size // 2 :])
        reply = await guest.reply()
        if reply is None:
            return 0
        if reply.status == 503:
            assert int(reply.headers["retry-after"]) >= 1
        return reply.status

    async def story(server: Server) -> tuple[Counter[int], int]:
        guests = await crowd.arrive(server, uploads)
        most = 0

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, measure(server).memory)
                await asyncio.sleep(0.02)

        watching = asyncio.ensure_future(watch())
        statuses = await crowd.together([upload(guest) for guest in guests])
        watching.cancel()
        await crowd.leave(guests)
        return Counter(statuses), most

    with serving("function", "--request-memory", str(budget)) as server, unharmed(server, 7, {"got": 7}) as before:
        counts, most = asyncio.run(story(server))
        assert counts.keys() == {200, 503}
        # An eighth of the budget is for small bodies.
        assert counts[200] >= budget * 7 // 8 // size
        assert counts[503] > uploads // 2
        assert most - before.memory < budget + (256 << 20)
        assert server.metric("panglot_request_memory_bytes") == 0


def test_a_body_in_tiny_pieces() -> None:
    """A body that comes two bytes at a time is whole in the end."""
    body = json.dumps("".join(chr(97 + number % 26) for number in range(4000))).encode()
    with serving("function") as server, Wire(server) as client:
        client.send(post(b"", f"Content-Length: {len(body)}"))
        for start in range(0, len(body), 2):
            client.send(body[start : start + 2])
        assert json.loads(client.reply().body) == {"got": json.loads(body)}


def test_tiny_pieces_cost_no_more_than_they_hold() -> None:
    """What a body costs is its size, not the number of pieces it comes in; large pieces are never copied."""
    destination = SimpleNamespace(model=SimpleNamespace(quota=None), route=SimpleNamespace(lane=""))
    exchange = Exchange(None, None, destination, 0.0)  # type: ignore[arg-type]
    large = bytes(100_000)
    pieces = [b"%06d" % number if number % 1000 else large for number in range(100_000)]
    for piece in pieces:
        exchange.add_piece(piece)
    assert b"".join(exchange.pieces) == b"".join(pieces)
    assert len(exchange.pieces) < 1000
    assert sum(piece is large for piece in exchange.pieces) == 100


@pytest.mark.parametrize("files", [64, 128])
def test_no_descriptors_left(files: int) -> None:
    """With all file descriptors in use the server neither spins nor dies, and recovers when some are free."""

    async def story(server: Server) -> None:
        guests = await crowd.arrive(server, 200)
        process = psutil.Process(server.process.pid)
        server.workers()[0].kill()
        await asyncio.sleep(0.5)
        process.cpu_percent()
        await asyncio.sleep(1)
        assert process.cpu_percent() < 40, "the server spins"
        await crowd.leave(guests)

    limited = ("--header-timeout", "60s", "--max-connections", "1000", "--restart-delay-max", "1s")
    with serving("function", *limited) as server:
        assert server.predict(7).status_code == 200
        before = measure(server)
        psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE, (files, files))
        asyncio.run(story(server))
        server.client.close()
        server.client = server.new_client()
        wait_until(lambda: server.predict(7).status_code == 200, 20, lambda: server.log)
        wait_until(lambda: measure(server).fds <= before.fds + 1, 10)
        for _ in range(20):
            assert server.predict(7).json() == {"got": 7}
    assert "Traceback" not in server.log
