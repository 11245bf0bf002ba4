"""The addresses that a script may connect to: the setting `worker_net`.

`guard`: while a request runs, sockets connect to public addresses only, and to hosts named by `url_allow`. Requests may
hold addresses that scripts fetch; they must not lead into the network the server stands in. C code that opens sockets
by itself is not seen. `none`: the worker has no network at all, by the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from panglot_worker.errors import ScriptError
from panglot_worker.line import wire
from panglot_worker.line.port import Frame, Port
from panglot_worker.net import addresses
from panglot_worker.net.hosts import ANY_PORT, AddressRefused, Allowed
from panglot_worker.scripts import current

TIMEOUT = 10.0
REMEMBERED = 30.0
LINES_PER_CALL = 16
"""Refusals of one call that get a line in the log; the counter counts all."""

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


class Guard:
    """Checks `connect`, `connect_ex`, `sendto` and `sendmsg` of Python's sockets while it is active."""

    def __init__(self, allowed: Sequence[str], refused: Callable[[str, int], None]) -> None:
        self.active = False
        self.refused = refused
        self.allowed = Allowed(allowed)
        self._resolve = socket.getaddrinfo
        self._known: Dict[str, Tuple[float, Set[str]]] = {}

    def install(self) -> None:
        """Put the guard in place, for good: a process has one."""
        # The methods of the class are replaced: that reaches libraries which imported `socket` before us.
        kind: Any = socket.socket
        connect, connect_ex, sendto, sendmsg = kind.connect, kind.connect_ex, kind.sendto, kind.sendmsg

        def guarded_connect(sock: socket.socket, address: Any) -> None:
            try:
                address = self.checked(sock, address)
            except AddressRefused:
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)) from None
            connect(sock, address)

        def guarded_connect_ex(sock: socket.socket, address: Any) -> Any:
            try:
                return connect_ex(sock, self.checked(sock, address))
            except AddressRefused:
                return errno.ECONNREFUSED

        def guarded_sendto(sock: socket.socket, data: Any, *rest: Any) -> Any:
            try:
                return sendto(sock, data, *rest[:-1], *(self.checked(sock, address) for address in rest[-1:]))
            except AddressRefused:
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)) from None

        def guarded_sendmsg(
            sock: socket.socket, buffers: Any, ancdata: Any = (), flags: int = 0, address: Any = None
        ) -> Any:
            try:
                where = None if address is None else self.checked(sock, address)
            except AddressRefused:
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)) from None
            return sendmsg(sock, buffers, ancdata, flags, where)

        kind.connect, kind.connect_ex = guarded_connect, guarded_connect_ex
        kind.sendto, kind.sendmsg = guarded_sendto, guarded_sendmsg

    def checked(self, sock: socket.socket, address: Any) -> Any:
        """The numeric address to connect to instead of a name. Raises AddressRefused."""
        inet = sock.family in (socket.AF_INET, socket.AF_INET6)
        if not self.active or not inet or not isinstance(address, tuple) or len(address) < 2:
            return address
        host, port = address[:2]
        if isinstance(host, (bytes, bytearray)):
            host = bytes(host).decode("ascii", "replace")
        if not isinstance(host, str) or not isinstance(port, int):
            return address
        candidates = self._numeric(sock, host, port)
        for candidate in candidates:
            if not addresses.is_public(candidate[0]) and not self._is_allowed(host, candidate[0], port):
                self.refused(candidate[0], port)
                raise AddressRefused
        # A client may name a host that never answers: without a limit the call would hang for minutes.
        if sock.gettimeout() is None:
            sock.settimeout(TIMEOUT)
        # The checked number is returned, not the name: a second look-up may give another address (DNS rebinding).
        return (candidates[0][0], *address[1:]) if len(candidates[0]) == 2 else candidates[0]

    def _numeric(self, sock: socket.socket, host: str, port: int) -> List[Any]:
        """The socket addresses a host stands for. One forbidden address among several spoils all."""
        number, percent, zone = host.partition("%")
        numeric = addresses.read(number)
        if numeric is not None:
            # Spelt anew: what was checked is what is connected to.
            return [(addresses.spelt(numeric) + percent + zone, port)]
        if host in ("", "<broadcast>"):
            return [("0.0.0.0" if not host else "255.255.255.255", port)]  # noqa: S104  what connecting to '' means
        return [entry[4] for entry in self._resolve(host, port, sock.family, sock.type)]

    def _is_allowed(self, host: str, address: str, port: int) -> bool:
        bare = address.partition("%")[0]
        for name, only in self.allowed.entries:
            if only in (ANY_PORT, port) and (name in (host.lower(), bare) or bare in self._addresses(name)):
                return True
        return False

    def _addresses(self, name: str) -> Set[str]:
        """The numeric addresses of an allowed host at present."""
        if addresses.read(name) is not None:
            return {name}
        now = time.monotonic()
        until, known = self._known.get(name, (0.0, set()))
        if now >= until:
            try:
                known = {str(entry[4][0]) for entry in self._resolve(name, None, type=socket.SOCK_STREAM)}
            except OSError:
                known = set()
            self._known[name] = (now + REMEMBERED, known)
        return known


class GuardedPort(Port):
    """The worker's line to the front. The guard is active from the arrival of a frame until `next` waits for another.

    A dialect with several items in flight never calls `next`: `poll` turns its guard on, for good.
    """

    def __init__(self, port: Port, allowed: Sequence[str]) -> None:
        super().__init__(port.sock, port.generation)
        # All state moves over, half a frame that was read included: the old port must not be read from again.
        self.__dict__.update(port.__dict__)
        self.guard = Guard(allowed, self._refused)
        self.guard.install()
        self._lines_written = 0

    def next(self) -> Frame:
        # Between two frames the script's own threads may connect as they like: no client chose these addresses.
        self.guard.active = False
        frame = super().next()
        self._lines_written = 0
        self.guard.active = True
        return frame

    def poll(self) -> None:
        self.guard.active = True
        super().poll()

    def _refused(self, address: str, port: int) -> None:
        self.tell(wire.METRIC, {"panglot_worker_net_refused_total": 1})
        self._lines_written += 1
        if self._lines_written <= LINES_PER_CALL:
            where = "[%s]:%d" % (address, port) if ":" in address else "%s:%d" % (address, port)
            ids = ", ".join(info.id for info in current.requests()[:4])
            message = "request %s: the script may not connect to %s; --url-allow %s would let it"
            self.tell(wire.EVENT, {"type": "warning", "message": message % (ids, where, where)})


def leave_network() -> None:
    """Take this process, which must have one thread only, out of every network. Raises ScriptError."""
    # Asked before `unshare`: in a new user namespace without a map both become those of nobody.
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        why = os.strerror(ctypes.get_errno()).lower()
        raise ScriptError(
            "--worker-net none: this machine does not let a process leave the network: %s" % why,
            fix="allow unprivileged user namespaces, run as root, or choose --worker-net guard",
        )
    # The order is the kernel's rule: without privileges gid_map may be written only after setgroups is denied.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)
