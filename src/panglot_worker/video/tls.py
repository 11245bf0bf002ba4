"""TLS for a connection that two threads use: a third thread carries the bytes, since TLS allows one user at a time."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from typing import Optional

SIZE = 65536


def wrapped(sock: socket.socket, host: str, timeout: float) -> socket.socket:
    """A plain socket to a server behind TLS, whose certificate was checked for its name. Raises OSError."""
    try:
        secured = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
    except OSError:
        sock.close()
        raise
    ours, theirs = socket.socketpair()
    theirs.settimeout(timeout)
    threading.Thread(target=_carry, args=(secured, ours, timeout), name="tls", daemon=True).start()
    return theirs


def _carry(secured: ssl.SSLSocket, plain: socket.socket, timeout: float) -> None:
    """Carry bytes both ways until one side ends or says nothing for too long."""
    with contextlib.suppress(OSError), secured, plain:
        while True:
            ready = [secured] if secured.pending() else select.select([secured, plain], [], [], timeout)[0]
            if not ready:
                return
            if plain in ready:
                sent = plain.recv(SIZE)
                if not sent:
                    return
                secured.settimeout(timeout)
                secured.sendall(sent)
            if secured in ready:
                answered = _received(secured)
                if answered == b"":
                    return
                plain.sendall(answered or b"")


def _received(secured: ssl.SSLSocket) -> Optional[bytes]:
    """What has come; None when that is only a part of a record yet, nothing at the end."""
    secured.setblocking(False)
    try:
        return secured.recv(SIZE)
    except ssl.SSLWantReadError:
        return None
