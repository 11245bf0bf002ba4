"""Opens sources in a network of its own and counts what that leads to. Run by test_hostile; not a test by itself."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "src"), str(Path(__file__).resolve().parents[1])]

from panglot_worker.net.hosts import AddressRefused  # noqa: E402
from panglot_worker.video import sources  # noqa: E402
from panglot_worker.video.decoder_process import DecoderProcess, Ended, Sampling, VideoSource  # noqa: E402
from panglot_worker.video.limits import SourceRules, VideoLimits  # noqa: E402
from support.live import LiveServer, whole  # noqa: E402

LIMITS = VideoLimits(open=8, stall=8, results=10)


def own_network() -> None:
    """A network with nothing but loopback, where the kernel lets us."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000) and libc.unshare(0x10000000 | 0x40000000):
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh", b"lo", 0x1 | 0x40)
        try:
            fcntl.ioctl(sock, 0x8914, request)
        except PermissionError:
            return


def sockets() -> set[str]:
    """Local ports in use, of any kind."""
    found = set()
    for name in ("tcp", "udp", "tcp6", "udp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            found.add(f"{name} {line.split()[1]}")
    return found


class Counting:
    def __init__(self) -> None:
        self.connections = self.datagrams = 0
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()
        threading.Thread(target=self._receive, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self.tcp.accept()
            self.connections += 1
            client.close()

    def _receive(self) -> None:
        while self.udp.recv(65536) is not None:
            self.datagrams += 1


def outcome(source: VideoSource, rules: SourceRules, opened: set[str]) -> str:
    decoder = DecoderProcess(source, Sampling(), LIMITS, rules)
    known = sockets()
    try:
        while True:
            decoder.next()
            opened |= sockets() - known
    except Ended as ended:
        return ended.kind
    finally:
        decoder.close()
        source.close()


def main(given: dict[str, Any]) -> dict[str, Any]:
    own_network()
    counting = Counting()
    outcomes: dict[str, str] = {}
    opened: set[str] = set()
    for name, path in given.get("files", {}).items():
        text = Path(path).read_bytes()
        if b"{port}" in text:
            Path(path).write_bytes(text.replace(b"{port}", str(counting.port).encode()))
        outcomes[name] = outcome(sources.find(path, SourceRules()), SourceRules(), opened)
    for name in given.get("served", []):
        body = Path(given["files"][name]).read_bytes()
        with LiveServer(lambda number, path, head, body=body: [whole(body)]) as web:
            rules = SourceRules(url_allow=(f"127.0.0.1:{web.port}",))
            outcomes[f"{name} served"] = outcome(sources.find(web.url("/a.mp4"), rules), rules, set())
    for word in given.get("words", []):
        try:
            outcomes[word[:60]] = outcome(
                sources.find(word.replace("{port}", str(counting.port)), SourceRules()), SourceRules(), opened
            )
        except AddressRefused:
            outcomes[word[:60]] = "refused"
    return {"outcomes": outcomes, "connections": counting.connections, "datagrams": counting.datagrams,
            "opened": sorted(opened)}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
    sys.stdout.flush()
    os._exit(0)
