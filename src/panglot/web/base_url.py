"""Where a client reached this server."""

from __future__ import annotations

import re

HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")


def base_url(scheme: str, host: str, server: tuple[str, int] | None) -> str:
    """The address by the name the client used if that is a proper one, else by the socket's address."""
    if HOST.fullmatch(host):
        return f"{scheme}://{host}"
    address, port = server or ("127.0.0.1", 8080)
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"
