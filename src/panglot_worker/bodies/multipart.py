"""multipart/form-data (RFC 7578) over a body in memory: one strict parser, linear in the size of the body.

Strict: lines end with CRLF, the last boundary is there, every part is form-data with a name, no header is
repeated. Accepted, because real clients send it: boundaries with characters that should have been quoted, raw
UTF-8 in names, `filename*` and `name*` (they win over their plain forms when they can be decoded), padding
after a boundary, a preamble, an epilogue. Percent signs in names stay as they are: browsers escape quotes and
line ends with them, but not the percent sign itself. A part of type multipart/mixed is one opaque part. The
Content-Length of a part is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Union

from panglot_worker.errors import ClientError

Body = Union[bytes, bytearray, memoryview]

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105  a token of a grammar
_VALUE = re.compile(rf"[ \t]*({_TOKEN}(?:/{_TOKEN})?)")
_QUOTED = r'"[^"\\\x00-\x08\x0a-\x1f\x7f]*(?:\\[^\x00-\x1f\x7f][^"\\\x00-\x08\x0a-\x1f\x7f]*)*"'
_PARAMETER = re.compile(rf'[ \t]*;[ \t]*(?:({_TOKEN})=({_QUOTED}|[^\x00-\x20\x7f";]*))?')
_ESCAPE = re.compile(r'\\(["\\])')
_EXTENDED = re.compile(r"(?i:utf-8)'[A-Za-z0-9-]*'((?:%[0-9A-Fa-f]{2}|[!-$&-~])*)")
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]")
_PADDING = re.compile(rb"[ \t]*\r\n")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_FORBIDDEN = re.compile(r"[\x00\r\n]")
_PLAIN_ENCODINGS = ("", "7bit", "8bit", "binary")
_WINDOW = 1 << 16


@dataclass(frozen=True)
class Limits:
    """How large and how deep bodies may be. `preamble` counts the epilogue too. Sizes are in bytes."""

    json_bytes: int = 32 << 20
    json_depth: int = 64
    parts: int = 64
    files: int = 32
    boundary: int = 70
    part_header_lines: int = 8
    part_header_bytes: int = 4 << 10
    field_name: int = 256
    text_field: int = 1 << 20
    preamble: int = 4 << 10
    file_name: int = 255
    form_fields: int = 1000
    output_bytes: int = 64 << 20
    output_depth: int = 64


class FormPart(NamedTuple):
    """One part of a form. `filename` is None for a text field; `content_type` is "" when the client gave none.

    `data` is a view into the body, `headers` has lower-case names.
    """

    name: str
    filename: str | None
    content_type: str
    data: memoryview
    headers: dict[str, str]


def parse_header(header: str) -> tuple[str, dict[str, str]]:
    """The lower-case value of a header and its parameters: `text/html; charset="utf-8"`.

    In a quoted string only backslash-quote and backslash-backslash are escapes: other backslashes belong to
    file names. Raises ClientError 400 for anything malformed and for a parameter given twice.
    """
    header = header.rstrip(" \t")
    match = _VALUE.match(header)
    if match is None:
        raise ClientError(f"the header value {header[:80]!r} is malformed")
    value = match.group(1).lower()
    parameters: dict[str, str] = {}
    while match.end() < len(header):
        at = match.end()
        match = _PARAMETER.match(header, at)
        if match is None:
            raise ClientError(f"the header value {header[:80]!r} is malformed at character {at}")
        name, text = match.groups()
        if name is None:
            continue
        name = name.lower()
        if name in parameters:
            raise ClientError(f"the parameter {name[:40]} is given twice in {header[:80]!r}")
        parameters[name] = _ESCAPE.sub(r"\1", text[1:-1]) if text[:1] == '"' else text
    return value, parameters


def parse(content_type: str, body: Body, limits: Limits) -> list[FormPart]:
    """The parts of a multipart/form-data body, in order.

    Raises ClientError: 400 for what is malformed, 413 for what is beyond a limit.
    """
    data = memoryview(body)
    delimiter = b"\r\n--" + _boundary(content_type, limits)
    preamble, at = _skip_preamble(data, delimiter, limits)
    parts: list[FormPart] = []
    files = 0
    while bytes(data[at : at + 2]) != b"--":
        line_end = _PADDING.match(data, at)
        if line_end is None:
            raise ClientError(f"the multipart boundary before byte {at} is not followed by a line end (CRLF)")
        if len(parts) == limits.parts:
            raise ClientError(f"the multipart body has more than {limits.parts} parts (byte {at})", 413)
        headers, start = _headers(data, line_end.end(), limits)
        # Two bytes back: in an empty part, the CRLF of the headers is also that of the boundary.
        end = _find(data, delimiter, start - 2)
        if end < 0:
            raise ClientError(f"the last multipart boundary is missing, after the part at byte {start}")
        part = _part(headers, data[start : max(start, end)], start, limits)
        files += part.filename is not None
        if files > limits.files:
            raise ClientError(f"the multipart body has more than {limits.files} files (byte {start})", 413)
        parts.append(part)
        at = end + len(delimiter)
    _refuse_epilogue(data, at + 2, preamble, limits)
    return parts


def _boundary(content_type: str, limits: Limits) -> bytes:
    value, parameters = parse_header(content_type)
    if value != "multipart/form-data":
        raise ClientError(f"multipart/form-data is expected, not {value[:80]}", 415)
    boundary = parameters.get("boundary", "")
    if not boundary:
        raise ClientError("the Content-Type multipart/form-data has no boundary")
    if len(boundary) > limits.boundary:
        raise ClientError(f"the multipart boundary is longer than {limits.boundary} characters")
    if not _BOUNDARY.fullmatch(boundary):
        raise ClientError(f"the multipart boundary {boundary!r} holds a character it must not")
    return boundary.encode("ascii")


def _find(data: memoryview, needle: bytes, start: int) -> int:
    """The offset of the next `needle`, or -1. A view cannot be searched; small copies of it can, and fast."""
    for at in range(start, len(data), _WINDOW):
        # Windows overlap, so that a boundary across two of them is found.
        offset = bytes(data[at : at + _WINDOW + len(needle) - 1]).find(needle)
        if offset >= 0:
            return at + offset
    return -1


def _skip_preamble(data: memoryview, delimiter: bytes, limits: Limits) -> tuple[int, int]:
    """How long the preamble is, and the offset after the first boundary."""
    if not data:
        raise ClientError("the request body is empty")
    if bytes(data[: len(delimiter) - 2]) == delimiter[2:]:
        return 0, len(delimiter) - 2
    at = _find(data, delimiter, 0)
    if at < 0:
        raise ClientError("the multipart boundary never appears in the body")
    if at > limits.preamble:
        raise ClientError(f"more than {limits.preamble} bytes stand before the first multipart boundary", 413)
    return at, at + len(delimiter)


def _refuse_epilogue(data: memoryview, at: int, preamble: int, limits: Limits) -> None:
    if len(data) > at and _PADDING.match(data, at) is None:
        raise ClientError(f"the last multipart boundary is not followed by a line end (byte {at})")
    if preamble + len(data) - at > limits.preamble:
        raise ClientError(f"more than {limits.preamble} bytes stand around the parts (byte {at})", 413)


def _headers(data: memoryview, at: int, limits: Limits) -> tuple[dict[str, str], int]:
    """The headers of the part that starts at `at`, and the offset of its data."""
    if bytes(data[at : at + 2]) == b"\r\n":
        raise ClientError(f"the multipart part at byte {at} has no headers")
    head, end, _ = bytes(data[at : at + limits.part_header_bytes + 4]).partition(b"\r\n\r\n")
    if not end:
        if len(data) - at > limits.part_header_bytes:
            limit = limits.part_header_bytes
            raise ClientError(f"the multipart part at byte {at} has more than {limit} bytes of headers", 413)
        raise ClientError(f"the multipart body ends inside the headers of the part at byte {at}")
    lines = head.split(b"\r\n")
    if len(lines) > limits.part_header_lines:
        limit = limits.part_header_lines
        raise ClientError(f"the multipart part at byte {at} has more than {limit} header lines", 413)
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise ClientError(f"a header of the multipart part at byte {at} is malformed: {line[:80]!r}")
        name = match.group(1).decode("ascii").lower()
        if name in headers:
            raise ClientError(f"the multipart part at byte {at} has the header {name[:40]} twice")
        headers[name] = _decode(match.group(2), at).rstrip(" \t")
    return headers, at + len(head) + 4


def _decode(value: bytes, at: int) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise ClientError(f"a header of the multipart part at byte {at} is not valid UTF-8") from None


def _part(headers: dict[str, str], data: memoryview, at: int, limits: Limits) -> FormPart:
    disposition, parameters = parse_header(headers.get("content-disposition", "-"))
    if disposition != "form-data":
        raise ClientError(f"the multipart part at byte {at} needs the header Content-Disposition: form-data")
    name = _label(parameters, "name", at)
    if not name:
        raise ClientError(f"the multipart part at byte {at} has no name")
    if len(name.encode("utf-8")) > limits.field_name:
        raise ClientError(f"the name of the field at byte {at} is longer than {limits.field_name} bytes", 413)
    filename = _label(parameters, "filename", at)
    if filename is not None and len(filename.encode("utf-8")) > limits.file_name:
        raise ClientError(f"the file name of field {name!r} is longer than {limits.file_name} bytes")
    encoding = headers.get("content-transfer-encoding", "").lower()
    if encoding not in _PLAIN_ENCODINGS:
        raise ClientError(f"field {name!r} has Content-Transfer-Encoding {encoding[:40]!r}; send plain bytes")
    if filename is None and len(data) > limits.text_field:
        limit = limits.text_field
        raise ClientError(f"text field {name!r} has more than {limit} bytes; send it with a filename", 413)
    return FormPart(name, filename, headers.get("content-type", ""), data, headers)


def _label(parameters: dict[str, str], key: str, at: int) -> str | None:
    """The name or file name: the extended form (RFC 5987) when it can be decoded, else the plain one."""
    label = parameters.get(key)
    if f"{key}*" in parameters:
        extended = _decode_extended(parameters[f"{key}*"])
        label = label if extended is None else extended
        if label is None:
            raise ClientError(f"{key}* of the multipart part at byte {at} cannot be decoded")
    # Continuations of RFC 2231: parsers disagree about what name they spell.
    if f"{key}*0" in parameters or f"{key}*0*" in parameters:
        raise ClientError(f"the {key} of the multipart part at byte {at} is cut in pieces; send it whole")
    if label is not None and _FORBIDDEN.search(label):
        raise ClientError(f"the {key} of the multipart part at byte {at} holds a NUL or a line end")
    return label


def _decode_extended(value: str) -> str | None:
    match = _EXTENDED.fullmatch(value)
    if match is None:
        return None
    # Between percent signs: two hexadecimal digits, then plain text.
    plain, *rest = match.group(1).split("%")
    decoded = plain.encode("ascii") + b"".join(bytes.fromhex(r[:2]) + r[2:].encode("ascii") for r in rest)
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError:
        return None
