"""The process on a node that makes a package's environment, before the first worker there starts."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict

from panglot_worker.life import loop
from panglot_worker.life.installing import InstallError, Wish, cache_folder, environment


def main(socket_fd: str, life_fd: str, keys_fd: str) -> None:
    """Entry point of a process on a node: make an environment, and tell the front its interpreter.

    Request and answer are JSON objects, in one line each. All output goes to the front's log.
    """
    loop.die_with_front(int(life_fd))
    with os.fdopen(int(keys_fd), "rb") as pipe:
        sock = loop.line(int(socket_fd), pipe.read()[loop.ROW_KEY :].decode())
    answer: Dict[str, Any] = {}
    try:
        said = json.loads(_read_line(sock))
        python = said["python"] or sys.executable
        answer = {"python": environment(Wish(**said["wish"]), python, cache_folder(), print)}
    except InstallError as error:
        print(*error.lines, sep="\n")
        answer = {"problem": str(error)}
    sock.sendall(json.dumps(answer).encode() + b"\n")


def _read_line(sock: Any) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = sock.recv(65536)
        if not piece:
            raise InstallError("the front hung up")
        data += piece
    return data
