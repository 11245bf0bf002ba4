"""The floor: bare uvicorn, raw ASGI, no isolation. Usage: floor.py PORT

`POST /` parses the JSON body and answers it back; `POST /raw` answers the bytes of the body, and
`POST /length` its length.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import uvicorn

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def read_body(receive: Receive) -> bytes:
    """The whole body; joined once, and not at all when it came in one piece."""
    message = await receive()
    body: bytes = message["body"]
    if not message["more_body"]:
        return body
    pieces = [body]
    while message["more_body"]:
        message = await receive()
        pieces.append(message["body"])
    return b"".join(pieces)


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    body = await read_body(receive)
    if scope["path"] == "/raw":
        answer, content_type = body, b"application/octet-stream"
    elif scope["path"] == "/length":
        answer, content_type = b"%d" % len(body), b"application/json"
    else:
        answer, content_type = orjson.dumps(orjson.loads(body)), b"application/json"
    headers = [(b"content-type", content_type), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
