"""The bytes behind the `uri` of a request: in the URI itself, fetched by the front, or in a file below `uri_root`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Dict, NamedTuple, Sequence, Tuple, Union

from panglot_worker.dialects.evals import rooted
from panglot_worker.dialects.evals.failures import BAD_DATA, FAILED, NOT_SUPPORTED, UNREADABLE, Failed
from panglot_worker.net import fetched
from panglot_worker.net.fetched import Buffer, Fetching, NotFetched

FETCHED = ("http://", "https://")
FILE = "file://"
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Fetched(NamedTuple):
    """The parts that the front has fetched for a request, in the order in which the worker named their addresses."""

    parts: Sequence[Union[Buffer, Failed]]


def split(raw: bytes, body: memoryview) -> Tuple[memoryview, Fetched]:
    """The client's body, and the fetched parts, which lie behind it in the same memory."""
    own, parts = fetched.split(raw, body)
    return own, Fetched(
        [
            Failed(part.status or FAILED, part.text or UNREADABLE) if isinstance(part, NotFetched) else part
            for part in parts
        ]
    )


class Sources:
    """Gives the bytes of URIs. The files of one request have at most `most` bytes together."""

    def __init__(self, root: str, most: int, linked: bool = False) -> None:
        self.root = root
        self.linked = linked
        self.most = most

    def load(self, wanted: Sequence[Dict[str, Any]], given: Union[Fetched, None]) -> None:
        """Put the bytes into every `body` whose `uri` is set, and empty the `uri`. Raises Failed, or Fetching."""
        http = list(dict.fromkeys(data["uri"] for data in wanted if data["uri"].startswith(FETCHED)))
        ready: Dict[str, Any] = dict(zip(http, given.parts)) if given is not None else {}
        left = self.most
        # Before anything is fetched: a request with an unreadable file costs no download.
        for data in wanted:
            if data["uri"] not in http:
                data["body"] = self._own(data["uri"], left)
                # The bytes of a `data:` URI came with the body, and count there.
                left -= 0 if data["uri"].startswith("data:") else len(data["body"])
        if http and given is None:
            raise Fetching(http)
        for data in wanted:
            if data["uri"] in ready:
                part = ready[data["uri"]]
                if isinstance(part, Failed):
                    raise part
                data["body"] = bytes(part)
            data["uri"] = ""

    def _own(self, uri: str, most: int) -> bytes:
        """The bytes in the URI, or of a file of at most `most` bytes. A path without a scheme needs a root."""
        if uri.startswith("data:"):
            return _data(uri)
        path = uri[len(FILE) :] if uri.startswith(FILE) else uri
        if path is uri and (SCHEME.match(uri) or not self.root):
            raise Failed(FAILED, NOT_SUPPORTED)
        try:
            return rooted.read(self.root, path, most, self.linked)
        except rooted.Unreadable:
            raise Failed(FAILED, UNREADABLE) from None


def _data(uri: str) -> bytes:
    head, comma, text = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        raise Failed(FAILED, BAD_DATA)
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise Failed(FAILED, BAD_DATA) from None
