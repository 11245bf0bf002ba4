"""What someone on the network sees: all packets of a loopback device, as they pass."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

EVERYTHING = 3
"""ETH_P_ALL"""


class Sniffer:
    """Records packets from or to some addresses. It needs the right to do so, as root has in a namespace of its own."""

    def __init__(self, *addresses: str) -> None:
        self._wanted = {socket.inet_aton(address) for address in addresses}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(EVERYTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._socket.settimeout(0.2)
        self._packets: list[bytes] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._record)

    def _record(self) -> None:
        while not self._done.is_set():
            with contextlib.suppress(TimeoutError):
                packet = self._socket.recv(1 << 17)
                if packet[12:16] in self._wanted or packet[16:20] in self._wanted:
                    self._packets.append(packet)

    @property
    def seen(self) -> bytes:
        """All that was in the packets. What is looked for may be cut by the border between two of them."""
        return b"".join(self._packets)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Sniffer]:
        self._thread.start()
        try:
            yield self
        finally:
            self._done.set()
            self._thread.join()
            self._socket.close()
