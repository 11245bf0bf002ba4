"""Looking up the addresses of a name with the system's resolver."""

from __future__ import annotations

import asyncio
import threading
from socket import SOCK_STREAM, getaddrinfo


async def look_up(host: str, port: int) -> list[str]:
    """All addresses of a name. Raises OSError.

    Each lookup has a thread of its own, and no thread is joined: a resolver may be slow. In an executor it would delay
    other lookups and the end of the server.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def deliver(addresses: list[str], error: OSError | None) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(addresses)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        addresses: list[str] = []
        failure: OSError | None = None
        try:
            entries = getaddrinfo(host, port, type=SOCK_STREAM)
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except OSError as error:
            failure = error
        except UnicodeError as error:
            failure = OSError(f"not a name: {error}")
        try:
            loop.call_soon_threadsafe(deliver, addresses, failure)
        except RuntimeError:
            pass  # the server has ended

    threading.Thread(target=look_up, name="resolve", daemon=True).start()
    return await answer
