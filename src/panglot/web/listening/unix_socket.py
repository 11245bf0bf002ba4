"""Listening on a Unix socket: a client that may open its file may send requests."""

from __future__ import annotations

import contextlib
import os
import socket
import stat

from panglot.errors import StartError


def bind(path: str, backlog: int) -> socket.socket:
    """Listen on a socket at this path, where no server listens yet. Raises StartError."""
    if not path:
        raise StartError("--host unix: needs the path of a socket", fix="--host unix:/run/panglot.sock")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_abandoned(path)
        # The whole path, so that `remove` finds the file from any working directory.
        sock.bind(os.path.abspath(path))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        why = (error.strerror or str(error)).lower()
        raise StartError(f"{path}: no socket can be made there: {why}", fix="name another --host unix:PATH") from None
    sock.setblocking(False)
    return sock


def _remove_abandoned(path: str) -> None:
    """Remove the socket file of a server that was killed: nothing listens on it any more."""
    with contextlib.suppress(FileNotFoundError):
        # Anything but a socket stays where it is, and `bind` fails on it.
        if stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    # Only a refused connection proves that nobody listens. The socket of a live server stays.
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)


def path_of(sock: socket.socket) -> str:
    """The path of the file of a Unix socket; empty for any other socket."""
    return str(sock.getsockname()) if sock.family == socket.AF_UNIX else ""


def remove(path: str) -> None:
    """Remove the file of our socket, which has stopped listening. An empty path names none."""
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)
