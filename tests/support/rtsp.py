"""A small RTSP server: H.264 over the connection itself."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable

from support.videos import made

NAL = re.compile(b"\x00\x00\x00?\x01")


def units(frames: int, first: int = 0) -> list[list[bytes]]:
    """The NAL units of every frame."""
    raw = made(frames, "h264", first=first, options={"x264-params": "slices=1:keyint=5:bframes=0:aud=1"})
    found: list[list[bytes]] = []
    for unit in NAL.split(raw)[1:]:
        if unit[0] & 31 == 9:
            found.append([])
        else:
            found[-1].append(unit)
    return found


class RtspServer:
    """Plays `frames` frames per connection, `pause` seconds apart, then does what `after` says."""

    def __init__(
        self,
        frames: int = 20,
        pause: float = 0.0,
        after: str = "close",
        redirect: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.units = units(frames)
        self.pause = pause
        self.after = after
        self.redirect = redirect
        self.tls = tls
        self.asked: list[str] = []
        self.connections = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.closing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"rtsp{'s' if self.tls else ''}://127.0.0.1:{self.port}/live"

    def close(self) -> None:
        self.closing.set()
        # Closing alone would leave it listening, since a thread waits in accept.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        if self.tls is not None:
            try:
                client = self.tls.wrap_socket(client, server_side=True)
            except OSError:
                return
        with client, client.makefile("rb") as source:
            try:
                while request := self._request(source):
                    self._answer(client, *request)
            except (OSError, UnicodeDecodeError):
                pass

    def _request(self, source: object) -> tuple[str, str] | None:
        first = source.readline().decode()  # type: ignore[attr-defined]
        sequence = "0"
        while (line := source.readline().decode().strip()) != "":  # type: ignore[attr-defined]
            if line.lower().startswith("cseq:"):
                sequence = line.partition(":")[2].strip()
        self.asked.append(first.strip())
        return (first.split()[0], sequence) if first else None

    def _answer(self, client: socket.socket, method: str, sequence: str) -> None:
        answers: dict[str, Callable[[], tuple[str, str]]] = {
            "OPTIONS": lambda: ("Public: DESCRIBE, SETUP, PLAY, TEARDOWN\r\n", ""),
            "DESCRIBE": self._describe,
            "SETUP": lambda: ("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n", ""),
            "PLAY": lambda: ("Session: 1\r\n", ""),
        }
        head, body = answers.get(method, lambda: ("", ""))()
        status = "200 OK"
        if method == "DESCRIBE" and self.redirect:
            status, head, body = "302 Moved", f"Location: {self.redirect}\r\n", ""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        client.sendall(f"RTSP/1.0 {status}\r\nCSeq: {sequence}\r\n{head}{length}\r\n{body}".encode())
        if method == "PLAY":
            self._play(client)

    def _describe(self) -> tuple[str, str]:
        sets = ",".join(base64.b64encode(unit).decode() for unit in self.units[0] if unit[0] & 31 in (7, 8))
        lines = (
            "v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=test", "c=IN IP4 0.0.0.0", "t=0 0", "m=video 0 RTP/AVP 96",
            "a=rtpmap:96 H264/90000", f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}", "a=control:track1",
        )  # fmt: skip
        return "Content-Type: application/sdp\r\n", "\r\n".join(lines) + "\r\n"

    def _play(self, client: socket.socket) -> None:
        sequence = 0
        for number, frame in enumerate(self.units):
            for place, unit in enumerate(frame):
                last = place == len(frame) - 1
                packet = struct.pack("!BBHII", 0x80, 96 | 0x80 * last, sequence & 65535, number * 3600, 1) + unit
                client.sendall(b"$\0" + struct.pack("!H", len(packet)) + packet)
                sequence += 1
            time.sleep(self.pause)
        if self.after == "stall":
            self.closing.wait(60)
        client.shutdown(socket.SHUT_RDWR)
        raise OSError
