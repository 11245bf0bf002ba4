"""Many connections at once, each a plain stream of bytes."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from support.server import Server
from support.wire import Reply, take

T = TypeVar("T")


@dataclass
class Guest:
    """One of them."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    data: bytearray = field(default_factory=bytearray)
    closed_after: float = -1.0
    came: float = field(default_factory=time.monotonic)

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.writer.write(data)
            await self.writer.drain()

    async def reply(self, seconds: float = 60) -> Reply | None:
        """The next answer; None when the server closes before one is whole."""
        async with asyncio.timeout(seconds):
            while (found := take(self.data)) is None:
                if not await self._read():
                    return None
        reply, size = found
        del self.data[:size]
        return reply

    async def _read(self) -> bytes:
        part = b""
        with contextlib.suppress(OSError):
            part = await self.reader.read(1 << 16)
        if not part and self.closed_after < 0:
            self.closed_after = time.monotonic() - self.came
        self.data += part
        return part

    async def drip(self, data: bytes, every: float, seconds: float) -> None:
        """Send byte by byte until the server closes; fails when it has not done so in time."""
        feeding = asyncio.ensure_future(self._feed(data, every))
        try:
            async with asyncio.timeout(seconds):
                while await self._read():
                    pass
        finally:
            feeding.cancel()

    async def _feed(self, data: bytes, every: float) -> None:
        for number in range(len(data)):
            await self.send(data[number : number + 1])
            await asyncio.sleep(every)

    def close(self) -> None:
        self.writer.transport.abort()


def make_room(connections: int) -> None:
    """Let this process, and the server it starts, have so many connections and some more; skips where it may not."""
    wanted = connections + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{wanted} files may not be open here")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def arrive(server: Server, count: int) -> list[Guest]:
    async def one() -> Guest:
        # Its time counts from before the server can know of it: this loop may learn late that it is connected.
        came = time.monotonic()
        return Guest(*await asyncio.open_connection("127.0.0.1", server.port), came=came)

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def leave(guests: Iterable[Guest]) -> None:
    """Close all connections, and let the loop notice."""
    for guest in guests:
        guest.close()
    await asyncio.sleep(0.01)


async def together(work: Sequence[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*work))


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run what blocks without holding up the crowd."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)
