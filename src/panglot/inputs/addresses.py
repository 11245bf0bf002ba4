"""Addresses of servers, as people write them: `http://host:port/path`, or `unix:PATH` for a Unix socket."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from panglot.errors import StartError
from panglot.settings.loopback import UNIX

DOCUMENT = "/openapi.json"
OPENAPI = {"Accept": "application/vnd.oai.openapi+json, application/json"}
"""The headers that ask for Panglot's own document: a platform may have another one at this path."""
MODEL = re.compile(r"/models/[^/?]+(?:/versions/[^/?]+)?(?=[/?]|$)")
FIX = "such as http://127.0.0.1:8080, or unix:/run/panglot.sock"


@dataclass(frozen=True)
class ServerAddress:
    """`wanted` is the path of the address, with its query; `socket` the file of a Unix socket, or empty."""

    host: str
    port: int
    wanted: str = ""
    secure: bool = False
    socket: str = ""

    @property
    def base(self) -> str:
        """The beginning of URLs on this server; over a Unix socket, with a host name that every server accepts."""
        return f"{'https' if self.secure else 'http'}://{self.authority}"

    @property
    def authority(self) -> str:
        """Host and port, as the header Host has them."""
        if self.socket:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def model(self) -> str:
        """The beginning of the paths of the model that the address names; empty where it names none."""
        match = MODEL.match(self.wanted)
        return match[0] if match is not None else ""

    @property
    def model_name(self) -> str:
        """The name of the model that the address names, as it stands in the address; empty where it names none."""
        return self.model.removeprefix("/models/").partition("/")[0]

    @property
    def documents(self) -> tuple[str, ...]:
        """The paths of the documents that describe what the address names, the most specific first."""
        name = self.model.partition("/versions/")[0]
        return (f"{name}{DOCUMENT}", DOCUMENT) if name else (DOCUMENT,)

    def path(self, document: str, native: str) -> str:
        """The path for requests, given the document that was found and the path of the script in it.

        The address of a server, or of one of its models in the form that the server prints, stands for its script.
        """
        path, mark, query = self.wanted.partition("?")
        if path in ("", "/"):
            return (native or "/") + mark + query
        # Only with the model's own document: the server's one has the script of the default model.
        if self.model and path.rstrip("/") == self.model and document != DOCUMENT:
            return self.model + native + mark + query
        return self.wanted

    def __str__(self) -> str:
        """The server, as a message names it."""
        return f"{UNIX}{self.socket}" if self.socket else self.base


def is_address(word: str) -> bool:
    return word.startswith(("http://", "https://", UNIX))


def server_address(url: str) -> ServerAddress:
    """The address in a text. Raises StartError.

    The path on a server behind a socket follows a colon: unix:/run/panglot.sock:/models/digits.
    """
    if url.startswith(UNIX):
        path, colon, wanted = url.removeprefix(UNIX).partition(":/")
        if not path:
            raise StartError(f"{url} names no socket", fix=FIX)
        return ServerAddress("localhost", 0, f"/{wanted}" if colon else "", socket=path)
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise StartError(f"{url} is no address of a server", fix=FIX)
    secure = parts.scheme == "https"
    wanted = parts.path + (f"?{parts.query}" if parts.query else "")
    return ServerAddress(parts.hostname, port or (443 if secure else 80), wanted, secure)
