"""Encrypted connections between a front and the nodes of a cluster, by TLS.

Both sides have the same certificate, made for one server, and accept no other. Each connection has keys of its own, so
that recorded traffic stays unreadable for a thief of the certificate's key.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import tempfile
import threading
from typing import List, Sequence, Union

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
NO_CHECK_TIME = 0x200000
"""Clocks of nodes need not agree with the front's."""
PIECE = 262144
JOIN_BELOW = 65536
Buffer = Union[bytes, bytearray, memoryview]


def context(certificate: str, is_node: bool) -> ssl.SSLContext:
    """The settings of TLS for a front or a node. `certificate` holds the certificate and its key, in PEM form."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_node else ssl.PROTOCOL_TLS_CLIENT)
    # The one certificate is pinned, so its name proves nothing more; nodes are reached by address.
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    made.verify_flags = ssl.VerifyFlags(made.verify_flags | NO_CHECK_TIME)
    if is_node:
        # Tickets would come unasked behind the handshake, and no connection is ever resumed.
        made.num_tickets = 0
    made.load_verify_locations(cadata=certificate)
    # `ssl` loads a key from files only; this one has no name, so that nobody else can open it.
    with tempfile.TemporaryFile() as file:
        file.write(certificate.encode())
        file.flush()
        made.load_cert_chain("/proc/self/fd/%d" % file.fileno())
    return made


class EncryptedSocket:
    """A worker's socket to its front, as `Port` uses it. One thread may read while another one sends.

    Two threads may not use a socket of `ssl` at once. So the session is in memory, under a lock that no thread holds
    while it waits for the network.
    """

    def __init__(self, sock: socket.socket, encryption: ssl.SSLContext) -> None:
        """Agree with the front on keys. Blocks. Raises OSError."""
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = encryption.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._lock = threading.Lock()
        self._agree()
        self._left = b""
        """Bytes that were decrypted and not read yet."""
        self._readable, self._wake = os.pipe()
        self._waiting = select.epoll()
        self._waiting.register(self._sock.fileno(), select.EPOLLIN)
        self._waiting.register(self._readable, select.EPOLLIN)

    def _agree(self) -> None:
        while True:
            try:
                self._session.do_handshake()
                break
            except ssl.SSLWantReadError:
                # The handshake leaves bytes to send at each step, and its last ones after it is done.
                self._sock.sendall(self._outgoing.read())
                self._feed(self._sock.recv(PIECE))
        self._sock.sendall(self._outgoing.read())

    def fileno(self) -> int:
        """A descriptor to wait on: it is readable while there are bytes in the socket, or decrypted bytes in memory."""
        return self._waiting.fileno()

    def recv(self, size: int, flags: int = 0) -> bytes:
        """The next bytes, at most `size`; none at the end of the stream. Raises OSError."""
        while True:
            # First what is decrypted already: the socket may stay silent while a whole frame lies here.
            data = self._left or self._decrypted()
            if data is None:
                # Waits without the lock, so that another thread can send meanwhile.
                self._feed(self._sock.recv(size, flags))
                continue
            self._keep(data[size:])
            return data[:size]

    def recv_into(self, buffer: memoryview) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _feed(self, data: bytes) -> None:
        with self._lock:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def _decrypted(self) -> Union[bytes, None]:
        """All bytes that can be decrypted now; None: more must come first; empty: the end. Raises OSError."""
        pieces: List[bytes] = []
        try:
            with self._lock:
                while True:
                    piece = self._session.read(PIECE)
                    pieces.append(piece)
                    if not piece:
                        break
        except ssl.SSLWantReadError:
            return b"".join(pieces) if pieces else None
        except ssl.SSLEOFError:
            pass
        except ssl.SSLError as error:
            raise ConnectionAbortedError("what the front sent cannot be decrypted: %s" % error) from None
        return b"".join(pieces)

    def _keep(self, left: bytes) -> None:
        """Note the bytes that are left. While there are any, the descriptor of `fileno` is readable."""
        # One byte in the pipe makes the epoll descriptor readable; it says nothing but "there is more".
        if left and not self._left:
            os.write(self._wake, b"x")
        elif self._left and not left:
            os.read(self._readable, 1)
        self._left = left

    def sendall(self, data: Buffer) -> None:
        """Encrypt and send. Only one thread at a time may do so. Blocks."""
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            with self._lock:
                # Encrypted and taken out under one lock: records must go out in the order of their numbers.
                self._session.write(view[start : start + PIECE])
                encrypted = self._outgoing.read()
            self._sock.sendall(encrypted)

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        """Send some of the buffers; returns how many bytes."""
        # Joined where that is cheap: each call of `sendall` makes records, and system calls, of its own.
        if sum(map(len, buffers)) <= JOIN_BELOW:
            data: Buffer = b"".join(buffers)
        else:
            data = buffers[0]
        self.sendall(data)
        return len(data)

    def close(self) -> None:
        self._waiting.close()
        os.close(self._readable)
        os.close(self._wake)
        self._sock.close()
