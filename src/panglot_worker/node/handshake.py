"""How the front and an agent prove to each other that they know the secret of this server, and how they begin to talk.

    agent -> front   nonce                                  32 bytes
    front -> agent   nonce, proof over both nonces          32 + 32
    agent -> front   proof over both nonces                 32
    front -> agent   what this connection is for, and its proof under the key of this connection
    agent -> front   an answer

Reads are exact, never a byte more: the bytes that follow may be for another process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import socket
from typing import Any, Dict, Tuple

SIZE = 32
LONGEST = 1 << 26
"""The most bytes of a message: the list of a package's files may be long."""
PATIENCE = 5.0
"""Seconds that a peer may take for the handshake."""
NOTICED_MS = 4000
"""Milliseconds without a packet from its machine after which a peer counts as gone."""


class NotOurs(ConnectionError):
    """The peer does not know the secret."""


def tune(sock: socket.socket) -> None:
    """Send at once, and notice within seconds that the other machine has gone or is cut off."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    # Keepalive is silent while sent data waits for its acknowledgement; this limit covers that case.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, NOTICED_MS)


def proof(secret: bytes, who: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"panglot " + who + b"".join(parts), hashlib.sha256).digest()


async def as_front(sock: socket.socket, secret: bytes) -> bytes:
    """Prove who we are to an agent, and have it prove who it is. Returns the key of this connection.

    Raises NotOurs, or OSError when the connection ends.
    """
    loop = asyncio.get_running_loop()
    theirs = await exactly(sock, SIZE)
    mine = secrets.token_bytes(SIZE)
    # The word in each proof differs, so that a proof cannot be sent back to the side that it came from.
    await loop.sock_sendall(sock, mine + proof(secret, b"front", theirs, mine))
    _check(await exactly(sock, SIZE), proof(secret, b"agent", theirs, mine))
    return proof(secret, b"key", theirs, mine)


async def as_agent(sock: socket.socket, secret: bytes) -> bytes:
    """Have a front prove who it is, and prove who we are. Returns the key of this connection.

    Raises NotOurs, or OSError when the connection ends.
    """
    loop = asyncio.get_running_loop()
    mine = secrets.token_bytes(SIZE)
    await loop.sock_sendall(sock, mine)
    theirs = await exactly(sock, SIZE)
    _check(await exactly(sock, SIZE), proof(secret, b"front", mine, theirs))
    await loop.sock_sendall(sock, proof(secret, b"agent", mine, theirs))
    return proof(secret, b"key", mine, theirs)


def _check(given: bytes, wanted: bytes) -> None:
    # In constant time: the time of an ordinary comparison tells how many bytes were right.
    if not hmac.compare_digest(given, wanted):
        raise NotOurs("the other end does not know the secret of this server")


async def exactly(sock: socket.socket, size: int) -> bytes:
    """The next `size` bytes. Raises ConnectionError when the stream ends before."""
    data = b""
    while len(data) < size:
        piece = await asyncio.get_running_loop().sock_recv(sock, size - len(data))
        if not piece:
            raise ConnectionResetError("the other end hung up")
        data += piece
    return data


def message(value: Dict[str, Any], key: bytes = b"") -> bytes:
    """A JSON object to send, with its length before it and, where there is a key, its proof behind it."""
    text = json.dumps(value).encode()
    return len(text).to_bytes(4, "little") + text + (proof(key, b"says", text) if key else b"")


async def receive(sock: socket.socket, key: bytes = b"") -> Dict[str, Any]:
    """The JSON object that comes next. Raises NotOurs, OSError or ValueError."""
    text = await exactly(sock, _length(await exactly(sock, 4)))
    # Before it is parsed: only a peer with the key of this connection may give us work.
    if key:
        _check(await exactly(sock, SIZE), proof(key, b"says", text))
    return _object(text)


def receive_blocking(sock: socket.socket) -> Dict[str, Any]:
    """The JSON object that comes next, on a socket that blocks. Raises OSError or ValueError."""
    return _object(exactly_blocking(sock, _length(exactly_blocking(sock, 4))))


def exactly_blocking(sock: socket.socket, size: int) -> bytes:
    """The next `size` bytes of a socket that blocks. Raises ConnectionError when the stream ends before."""
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionResetError("the other end hung up")
        data += piece
    return bytes(data)


def _length(head: bytes) -> int:
    length = int.from_bytes(head, "little")
    if length > LONGEST:
        raise ValueError("a message of %d bytes, where at most %d may come" % (length, LONGEST))
    return length


def _object(text: bytes) -> Dict[str, Any]:
    try:
        value = json.loads(text.decode("utf-8"))
    except RecursionError:
        raise ValueError("a message that nests too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("a message that is no object")
    return value


def heard(line: bytes) -> Dict[str, Any]:
    """The JSON object in a line of a control connection. Raises ValueError."""
    return _object(line)


def number(said: Dict[str, Any], name: str) -> int:
    """The whole number that a message has under a name. Raises ValueError."""
    value = said.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a message without a whole number as %s" % name)
    return value


Address = Tuple[str, int]
