"""Talking to a VideoServer under test."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from support.server import Server, wait_until

LONG = 30.0
OVER = ("finished", "failed", "stopped")


class Event(NamedTuple):
    name: str
    id: str
    data: Any


def start(server: Server, url: object, query: str = "") -> int:
    answer = begin(server, url, query)
    assert answer.status_code == 200, answer.text
    found = re.fullmatch(r"start stream whose id is (\d+)", answer.text)
    assert found is not None, answer.text
    return int(found[1])


def begin(server: Server, url: object, query: str = "") -> httpx.Response:
    return server.client.post(f"/start/{quote(str(url), safe='')}{query}")


def listed(server: Server, stream: int) -> dict[str, Any]:
    """What /list says of a stream; nothing when it is not there."""
    return next((one for one in server.client.get("/list").json() if one["id"] == stream), {})


def ended(server: Server, stream: int) -> dict[str, Any]:
    wait_until(lambda: listed(server, stream).get("state") in OVER, LONG, lambda: f"{listed(server, stream)}")
    return listed(server, stream)


def messages(server: Server, stream: int) -> list[dict[str, Any]]:
    return [json.loads(text) for text in server.client.get(f"/get_msgs/{stream}").json()]


@contextlib.contextmanager
def events(server: Server, stream: int, after: int | None = None) -> Iterator[Iterator[Event]]:
    headers = {} if after is None else {"last-event-id": str(after)}
    with server.client.stream("GET", f"/events/{stream}", headers=headers, timeout=LONG) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    name, number, data = "", "", ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data = value
        elif not line and data:
            yield Event(name, number, json.loads(data))
            name, number, data = "", "", ""
