"""The object that a script returns to give more than a value: a status, headers, a content type."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Optional
from urllib.parse import quote

from panglot_worker.errors import EncodeError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~]*")
_CONTENT_TYPE = re.compile(r"[!-~]+/[ -~]+")
_NOT_IN_QUOTES = re.compile(r"[^ !#-\[\]-~]|%(?=[0-9A-Fa-f]{2})")
OURS = frozenset(
    (
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "server-timing",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    )
)
"""Headers that belong to the server: they frame the answer, or identify it."""
MOST_HEADERS = 64
LONGEST_HEADER = 4000
BODILESS = (204, 205, 304)


class Response:
    """An answer with a status, headers and a content type of its own.

    `value` is what the script would return otherwise. A header may have a list of values: one line for each. What
    cannot be sent is a failure of this request alone, and the log says why.
    """

    __slots__ = ("content_type", "headers", "status", "value")

    def __init__(
        self,
        value: Any = None,
        status: int = 200,
        headers: Optional[Mapping[str, Any]] = None,
        content_type: str = "",
    ) -> None:
        self.value = value
        self.status = status
        self.headers = dict(headers or {})
        self.content_type = content_type

    def __repr__(self) -> str:
        return f"Response({self.value!r}, status={self.status}, headers={self.headers!r})"

    def __contains__(self, header: str) -> bool:
        return any(str(name).lower() == header for name in self.headers)

    def check(self) -> None:
        """Raises EncodeError for a status that no answer has, or a content type that is none."""
        if type(self.status) is not int or not 200 <= self.status <= 599:
            raise EncodeError(f"the status of a Response is 200 to 599, not {self.status!r:.40}")
        if self.status in BODILESS and self.value is not None:
            raise EncodeError(f"an answer with status {self.status} has no body; leave the value out")
        if self.content_type and not _CONTENT_TYPE.fullmatch(str(self.content_type)):
            raise EncodeError(f"{str(self.content_type)[:80]!r} is not a content type")

    def lines(self) -> List[str]:
        """The headers as lines. Raises EncodeError for what is no header, or is the server's own."""
        lines = [line for name, value in self.headers.items() for line in _lines(name, value)]
        if len(lines) > MOST_HEADERS:
            raise EncodeError(f"a Response has at most {MOST_HEADERS} headers")
        return lines


def _lines(name: Any, value: Any) -> Iterator[str]:
    """The lines of one header. Nothing in them can end a line: that would let a value write headers of its own."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise EncodeError(f"{name!r:.80} is not the name of a header")
    if name.lower() in OURS:
        raise EncodeError(f"the header {name} is the server's own")
    if name.lower() == "content-type":
        raise EncodeError("say content_type=... instead of a header Content-Type")
    for line in value if isinstance(value, (list, tuple)) else [value]:
        text = str(line) if isinstance(line, (str, int, float)) else ""
        if not isinstance(line, (str, int, float)) or not _VALUE.fullmatch(text) or len(text) > LONGEST_HEADER:
            about = "printable ASCII in one line, of at most %d characters" % LONGEST_HEADER
            raise EncodeError(f"the value of the header {name} must be {about}")
        yield f"{name.lower()}: {text}"


def is_json(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media == "application/json" or media.endswith("+json")


def disposition(name: str) -> str:
    """The header line that names a file; of a path its last part. Empty for a file without a name."""
    name = re.split(r"[/\\]", name)[-1]
    plain = _NOT_IN_QUOTES.sub("_", name)[:200]
    if not name:
        return ""
    line = f'content-disposition: attachment; filename="{plain}"'
    if plain == name:
        return line
    return f"{line}; filename*=UTF-8''{quote(name.encode('utf-8', 'replace')[:255], safe='')}"
