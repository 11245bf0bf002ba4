"""Forms: parts that lie in the body in order and are those Python's email parser finds, or one refusal."""

from __future__ import annotations

import contextlib
import email
import re
from collections.abc import Callable, Iterator
from email.message import Message

from panglot_worker.bodies import codec
from panglot_worker.bodies.multipart import FormPart, Limits, parse
from panglot_worker.errors import ClientError

TYPE = b"multipart/form-data; boundary=B"
LIMITS = Limits(
    parts=6, files=3, part_header_lines=4, part_header_bytes=200, field_name=20, text_field=100, preamble=40,
    file_name=30,
)  # fmt: skip
BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n")
PLAIN = re.compile(r"form-data(?:; (?:name|filename)=(?:\"[ !#-\[\]-~]*\"|[A-Za-z0-9]+))*")
NESTED = ("multipart/", "message/")

WORDS = [
    *rb"""multipart/form-data boundary= ; = " \ --B --B-- --BB B -- ' % %22 %E5%90%8D utf-8'' filename*""".split(),
    *rb"""name* name*0 charset= application/json application/x-www-form-urlencoded a=1&b=%20""".split(),
    *[b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\t", b" ", b"\0", b"\xff", "名".encode()],
    b"multipart/form-data; boundary=B\n",
    b'multipart/form-data; boundary="a b"\n',
    b'Content-Disposition: form-data; name="a"',
    b'; filename="f.png"',
    b"; filename*=utf-8''%E5%90%8D.png",
    b"Content-Type: image/png",
    b"Content-Type: multipart/mixed; boundary=C",
    b"Content-Transfer-Encoding: binary",
    b'\r\n--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
    b"\r\n--B--\r\n",
]


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(data: bytes) -> None:
    """The first line is the Content-Type, the rest the body."""
    head, found, body = data.partition(b"\n")
    content_type = (head if found else TYPE).decode("latin-1")
    body = body if found else data
    check_decoding(content_type, body)
    for limits in (LIMITS, Limits()):
        try:
            parts = parse(content_type, body, limits)
        except ClientError as error:
            check_refusal(error)
        else:
            check_parts(parts, body, limits)
            check_against_email(parts, content_type, body)


def check_refusal(error: ClientError) -> None:
    assert error.status in (400, 413, 415)
    assert len(str(error)) < 500


def check_decoding(content_type: str, body: bytes) -> None:
    """What a script is given, for any Content-Type."""
    try:
        value = codec.decode(content_type, body, LIMITS)
    except ClientError as error:
        check_refusal(error)
    else:
        assert isinstance(value, (dict, list, str, int, float, codec.File, type(None)))


def check_parts(parts: list[FormPart], body: bytes, limits: Limits) -> None:
    at = 0
    for part in parts:
        assert part.name
        assert not re.search(r"[\0\r\n]", part.name + (part.filename or ""))
        at = body.index(bytes(part.data), at) + len(part.data)
    assert len(parts) <= limits.parts
    assert sum(part.filename is not None for part in parts) <= limits.files


def check_against_email(parts: list[FormPart], content_type: str, body: bytes) -> None:
    """The email parser agrees on what both read: it ends lines at a bare CR or LF too, and looks into nested parts."""
    if not parts or BARE.search(body) or "*" in content_type or "\\" in content_type:
        return
    if any(part.content_type.lstrip().lower().startswith(NESTED) for part in parts):
        return
    message = email.message_from_bytes(b"Content-Type: %s\r\n\r\n%s" % (content_type.encode("latin-1"), body))
    theirs = message.get_payload()
    assert isinstance(theirs, list), theirs
    assert len(theirs) == len(parts)
    for part, other in zip(parts, theirs, strict=True):
        assert isinstance(other, Message)
        assert other.get_payload(decode=True) == bytes(part.data)
        if PLAIN.fullmatch(part.headers["content-disposition"]):
            assert other.get_param("name", header="content-disposition") == part.name
            assert other.get_param("filename", header="content-disposition") == part.filename
