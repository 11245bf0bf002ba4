"""The end of listening: no new connection comes in, and no connection is lost that the kernel has accepted."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct

SO_ATTACH_FILTER = 26
DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)
"""A packet filter of one instruction: accept no byte."""


async def stop_accepting(server: asyncio.Server, sock: socket.socket) -> None:
    """Refuse new connections without losing those the kernel has already accepted for us."""
    with contextlib.suppress(OSError):
        program = ctypes.create_string_buffer(DROP_ALL)
        # The filter drops what newcomers send. Clients whose connection the kernel has completed are not touched.
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
    # Closing the socket would reset connections that the kernel has completed and the loop has not accepted yet.
    for _ in range(50):
        await asyncio.sleep(0.01)
        if not _waiting_in_kernel(sock):
            break
    server.close()


def _waiting_in_kernel(sock: socket.socket) -> int:
    """How many connections wait to be accepted (for a listening socket TCP_INFO says so)."""
    with contextlib.suppress(OSError, struct.error):
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return int(struct.unpack_from("8B5I", info)[12])
    return 0
