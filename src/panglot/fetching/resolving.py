"""Names to addresses, by the system's resolver."""

from __future__ import annotations

import asyncio
import threading
from socket import SOCK_STREAM, getaddrinfo


async def look_up(host: str, port: int) -> list[str]:
    """All addresses of a name. Raises OSError.

    On a thread of its own that nobody waits for at the end: a resolver may take its time, and an executor's threads
    would keep others from theirs, and the server from ending.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def tell(found: list[str], error: OSError | None) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def ask() -> None:
        found: list[str] = []
        failure: OSError | None = None
        try:
            entries = getaddrinfo(host, port, type=SOCK_STREAM)
            found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except OSError as error:
            failure = error
        except UnicodeError as error:
            failure = OSError(f"not a name: {error}")
        try:
            loop.call_soon_threadsafe(tell, found, failure)
        except RuntimeError:
            pass  # the server has ended

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    return await answer
