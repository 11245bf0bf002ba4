"""A bare server around the same Python calls: `python bare_server.py KIND PACKAGE PORT LIBRARIES`.

uvicorn with httptools and uvloop, one process, one function of ASGI: no isolation, no limits, no log, no deadlines.
LIBRARIES is a folder with uvicorn, for interpreters that have none; what they have themselves comes first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from calls import KINDS, Call

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def app_of(call: Call) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        message = await receive()
        body: bytes = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        status, headers, answer = call(body, scope["headers"])
        length = (b"content-length", b"%d" % len(answer))
        headers = [*(pair for pair in headers if pair[0] != b"content-length"), length]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


def main() -> None:
    kind, package, port, libraries = sys.argv[1:]
    sys.path.append(libraries)
    import uvicorn

    app = app_of(KINDS[kind](package))
    os.chdir(package)
    uvicorn.run(
        app, host="127.0.0.1", port=int(port), http="httptools", loop="uvloop", lifespan="off", access_log=False,
        log_level="warning",
    )  # fmt: skip


if __name__ == "__main__":
    main()
