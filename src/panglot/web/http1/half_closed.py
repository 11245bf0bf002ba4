"""Clients that have sent their last byte: those that still listen get their answer, those that have gone are noticed.

Both look alike until something is written to them. So the first bytes of the answer, which are always the same, are
written at once: the machine of a client that has gone then resets the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

BEGINNING = b"HTTP/1.1 "
"""The first bytes of every answer."""


class BegunTransport:
    """A transport on which the beginning of the next answer has been written already."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._begun = True
        transport.write(BEGINNING)

    def write(self, data: Any) -> None:
        self._transport.write(self._rest(data))

    def writelines(self, pieces: Iterable[Any]) -> None:
        first, *others = pieces
        self._transport.writelines((self._rest(first), *others))

    def _rest(self, data: Any) -> Any:
        if not self._begun:
            return data
        # The head is always written first, so the bytes that are cut off here are never those of a body.
        self._begun = False
        return data[len(BEGINNING) :]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
