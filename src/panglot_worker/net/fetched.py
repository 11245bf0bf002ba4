"""Addresses in a request: a worker names them, the front fetches their contents and runs the item once more."""

from __future__ import annotations

import json
from typing import List, NamedTuple, Tuple, Union

Buffer = Union[bytes, bytearray, memoryview]


class Fetching(Exception):
    """Raised while a request is read: its dialect answers with `wire.FETCH` and these addresses as JSON."""

    def __init__(self, uris: List[str]) -> None:
        super().__init__("fetching")
        self.uris = uris

    def to_json(self) -> bytes:
        """The body of that answer."""
        return json.dumps(self.uris).encode("ascii")


class NotFetched(NamedTuple):
    """The reason why an address has no content; the status is 0 where no server answered."""

    status: int
    text: str


def split(about: bytes, body: memoryview) -> Tuple[memoryview, List[Union[Buffer, NotFetched]]]:
    """The client's own body, and the fetched contents in the order of the addresses. `about` is `Head.fetched`."""
    layout = json.loads(about)
    at = int(layout["body"])
    own = body[:at]
    parts: List[Union[Buffer, NotFetched]] = []
    for size, status, text in layout["parts"]:
        if size >= 0:
            parts.append(body[at : at + size])
            at += size
        else:
            parts.append(NotFetched(int(status), str(text)))
    return own, parts
