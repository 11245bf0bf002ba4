"""A proxy that does nothing but pass bytes on, built as `panglot record` is: asyncio streams on uvloop."""

from __future__ import annotations

import asyncio
import sys

import uvloop

PIECE = 64 << 10


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(port: int, service: int) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs = await asyncio.open_connection("127.0.0.1", service, limit=PIECE)
        await asyncio.gather(passed(reader, theirs[1]), passed(theirs[0], writer), return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", port, limit=PIECE)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
