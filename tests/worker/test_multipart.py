from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot_worker.bodies.multipart import FormPart, Limits, parse, parse_header
from panglot_worker.errors import ClientError

LIMITS = Limits()
TYPE = "multipart/form-data; boundary=B"
FIELD = b'Content-Disposition: form-data; name="a"'
FILE = b'Content-Disposition: form-data; name="a"; filename="f"'
MIB = 1 << 20


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


def build(*parts: tuple[bytes, bytes], boundary: bytes = b"B") -> bytes:
    pieces = [b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary, headers, data) for headers, data in parts]
    return b"".join(pieces) + b"--%s--\r\n" % boundary


def one(headers: bytes, data: bytes = b"x", content_type: str = TYPE) -> FormPart:
    (part,) = parse(content_type, build((headers, data)), LIMITS)
    return part


def test_parts_in_order() -> None:
    body = build((FIELD, b"one"), (FILE + b"\r\nContent-Type: image/png", b"\x89PNG\r\n\r\n"), (FIELD, b""))
    text, file, empty = parse(TYPE, body, LIMITS)
    assert (text.name, text.filename, text.content_type, bytes(text.data)) == ("a", None, "", b"one")
    assert (file.name, file.filename, file.content_type) == ("a", "f", "image/png")
    assert bytes(file.data) == b"\x89PNG\r\n\r\n"
    assert bytes(empty.data) == b""
    assert file.headers["content-type"] == "image/png"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(kind: type) -> None:
    (part,) = parse(TYPE, kind(build((FILE, b"\0\xff"))), LIMITS)
    assert bytes(part.data) == b"\0\xff"


def upload(boundary: str, parameters: str, *headers: str) -> tuple[str, bytes]:
    """The Content-Type and the body of an upload of one file, as a client writes them."""
    lines = [f'Content-Disposition: form-data; name="file"; {parameters}', *headers]
    content_type = f"multipart/form-data; boundary={boundary}"
    return content_type, build(("\r\n".join(lines).encode(), b"DATA"), boundary=boundary.strip('"').encode())


CLIENTS = {
    "curl": (
        upload("-" * 24 + "d74496d66958873e", 'filename="a\\"b.png"', "Content-Type: image/png"),
        'a"b.png',
    ),
    "requests": (upload("0a3cdac8c35d4a3f", 'filename="x.bin"'), "x.bin"),
    "urllib3 with filename*": (upload("0a3c", "filename*=utf-8''%E5%90%8D.png"), "名.png"),
    "Chrome": (
        upload("----WebKitFormBoundary7MA4YWxk", 'filename="a%22b名%0D%0A.png"', "Content-Type: image/png"),
        "a%22b名%0D%0A.png",
    ),
    "Firefox": (upload("-" * 27 + "90519140415448433659", 'filename="C:\\dir\\x.png"'), "C:\\dir\\x.png"),
    "OkHttp": (
        upload("6e3d0b5f-9f4b-4f0e", 'filename="x"', "Content-Type: image/jpeg", "Content-Length: 4"),
        "x",
    ),
    "Apache HttpClient": (upload("Fj3_Q7", 'filename="x"', "Content-Transfer-Encoding: binary"), "x"),
    "JavaMail": (upload('"----=_Part_5_1234.5678"', "filename=x"), "x"),
    "boundary that should be quoted": (upload("----=_Part/5?1:2", "filename=x"), "x"),
    "Postman": (upload("-" * 26 + "5147", 'filename="x y.csv"', "Content-Type: text/csv"), "x y.csv"),
    "aiohttp": (upload("b2f0", "filename=\"%E5%90%8D.png\"; filename*=utf-8''%E5%90%8D.png"), "名.png"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_real_clients_send(client: str) -> None:
    (content_type, body), filename = CLIENTS[client]
    (part,) = parse(content_type, body, LIMITS)
    assert (part.name, part.filename, bytes(part.data)) == ("file", filename, b"DATA")


@pytest.mark.parametrize(
    ("parameters", "filename"),
    [
        (b'; filename=""', ""),
        (b'; filename="../../x"', "../../x"),
        (b'; filename="/etc/passwd"', "/etc/passwd"),
        ('; filename="a\u202egpj.exe"'.encode(), "a\u202egpj.exe"),
        (b'; filename="' + b"x" * 255 + b'"', "x" * 255),
        (b"; filename=\"plain\"; filename*=utf-8''extended", "extended"),
        (b"; filename*=UTF-8'en'extended; filename=\"plain\"", "extended"),
        (b"; filename=\"plain\"; filename*=utf-8''%FF", "plain"),
        (b"; filename=\"plain\"; filename*=latin9''x", "plain"),
        (b"; filename=\"plain\"; filename*=utf-8''%4", "plain"),
        (b'; filename="a;b=c.txt"', "a;b=c.txt"),
        (b'; filename="a\\\\b"', "a\\b"),
        (b'; filename="a"; size=12; creation-date="Wed, 12 Feb 1997 16:29:51 -0500"', "a"),
        (b";", None),
    ],
)
def test_file_names_are_kept_verbatim(parameters: bytes, filename: str | None) -> None:
    assert one(b'Content-Disposition: form-data; name="a"' + parameters).filename == filename


def more_headers(count: int) -> bytes:
    return b"".join(b"\r\nX-%d: y" % number for number in range(count))


NEAR = b"\r\n--" + b"b" * 69
ONE = build((FIELD, b"x"))

# What the corpus of hostile bodies names, with the status it must be answered with.
REFUSED = {
    "no boundary": (ONE, 400, "multipart/form-data"),
    "empty boundary": (ONE, 400, "multipart/form-data; boundary="),
    "empty quoted boundary": (ONE, 400, 'multipart/form-data; boundary=""'),
    "boundary of 71": (build((FIELD, b"x"), boundary=b"b" * 71), 400, TYPE[:-1] + "b" * 71),
    "boundary of 10^4": (ONE, 400, TYPE[:-1] + "b" * 10**4),
    "quotes in the boundary": (ONE, 400, 'multipart/form-data; boundary=B"'),
    "unclosed quote": (ONE, 400, 'multipart/form-data; boundary="B'),
    "CRLF in the boundary": (ONE, 400, 'multipart/form-data; boundary="B\r\nX: y"'),
    "space at the end of the boundary": (ONE, 400, 'multipart/form-data; boundary="B "'),
    "non-ASCII boundary": (ONE, 400, "multipart/form-data; boundary=é"),
    "two boundaries": (ONE, 400, "multipart/form-data; boundary=B; boundary=C"),
    "another type": (ONE, 415, "multipart/mixed; boundary=B"),
    "empty body": (b"", 400, TYPE),
    "boundary never appears": (b"x" * MIB, 400, TYPE),
    "boundary without dashes": (b"B\r\n" + FIELD + b"\r\n\r\nx\r\nB--", 400, TYPE),
    "JSON claimed to be multipart": (b'{"a":1}', 400, TYPE),
    "65 parts": (build(*[(FIELD, b"x")] * 65), 413, TYPE),
    "10^5 parts": (build(*[(FIELD, b"")] * 10**5), 413, TYPE),
    "33 files": (build(*[(FILE, b"x")] * 33), 413, TYPE),
    "same field 10^3 times": (build(*[(FIELD, b"x")] * 1000), 413, TYPE),
    "9 header lines": (build((FIELD + more_headers(8), b"x")), 413, TYPE),
    "10^5 part headers": (build((FIELD + more_headers(10**5), b"x")), 413, TYPE),
    "part header of 1 MiB": (build((FIELD + b"\r\nX: " + b"y" * MIB, b"x")), 413, TYPE),
    "headers never end": (b"--B\r\n" + FIELD + b"\r\nX: y" * MIB, 413, TYPE),
    "header block never ends, short": (b"--B\r\n" + FIELD + b"\r\nX: y", 400, TYPE),
    "preamble of 1 MiB": (b"x" * MIB + b"\r\n" + ONE, 413, TYPE),
    "epilogue of 64 MiB": (ONE + b"x" * (64 * MIB), 413, TYPE),
    "preamble and epilogue together": (b"x" * 2100 + b"\r\n" + ONE + b"x" * 2100, 413, TYPE),
    "bytes right after the end": (ONE[:-2] + b"x", 400, TYPE),
    "full of CRLF": (b"--B\r\n" + FIELD + b"\r\n\r\n" + b"\r\n" * (16 * MIB), 400, TYPE),
    "full of CR": (b"--B\r\n" + FILE + b"\r\n\r\n" + b"\r" * (32 * MIB), 400, TYPE),
    "full of near boundaries": (
        NEAR[2:] + b"b\r\n" + FILE + b"\r\n\r\n" + NEAR * (MIB // 2),
        400,
        TYPE[:-1] + "b" * 70,
    ),
    "boundary as a prefix": (build((FIELD, b"x\r\n--Bx")), 400, TYPE),
    "bare LF": (ONE.replace(b"\r\n", b"\n"), 400, TYPE),
    "LF after the boundary": (ONE.replace(b"--B\r\n", b"--B\n", 1), 400, TYPE),
    "no headers": (b"--B\r\n\r\nx\r\n--B--\r\n", 400, TYPE),
    "no Content-Disposition": (build((b"Content-Type: text/plain", b"x")), 400, TYPE),
    "attachment": (build((b'Content-Disposition: attachment; name="a"', b"x")), 400, TYPE),
    "no name": (build((b"Content-Disposition: form-data", b"x")), 400, TYPE),
    "empty name": (build((b'Content-Disposition: form-data; name=""', b"x")), 400, TYPE),
    "name twice": (build((FIELD + b'; name="b"', b"x")), 400, TYPE),
    "name of 257 bytes": (build((FIELD[:-2] + b"n" * 257 + b'"', b"x")), 413, TYPE),
    "Content-Disposition twice": (build((FIELD + b"\r\n" + FIELD, b"x")), 400, TYPE),
    "folded header": (build((FIELD + b';\r\n filename="f"', b"x")), 400, TYPE),
    "header without colon": (build((FIELD + b"\r\nnonsense", b"x")), 400, TYPE),
    "space before the colon": (build((FIELD + b"\r\nX : y", b"x")), 400, TYPE),
    "bare CR in a header": (build((FIELD + b"\r\nX: a\rb", b"x")), 400, TYPE),
    "header that is not UTF-8": (build((FIELD + b'; filename="\xff"', b"x")), 400, TYPE),
    "NUL in the file name": (build((FIELD + b'; filename="a\0b"', b"x")), 400, TYPE),
    "NUL in filename*": (build((FIELD + b"; filename*=utf-8''a%00b", b"x")), 400, TYPE),
    "CRLF in filename*": (build((FIELD + b"; filename*=utf-8''a%0D%0Ab", b"x")), 400, TYPE),
    "only a bad filename*": (build((FIELD + b"; filename*=utf-8''%FF", b"x")), 400, TYPE),
    "filename in pieces": (build((FIELD + b'; filename*0="a"; filename*1="b"', b"x")), 400, TYPE),
    "file name of 256": (build((FIELD + b'; filename="' + b"x" * 256 + b'"', b"x")), 400, TYPE),
    "file name of 10 KB": (build((FIELD + b'; filename="' + b"x" * 10**4 + b'"', b"x")), 413, TYPE),
    "base64": (build((FILE + b"\r\nContent-Transfer-Encoding: base64", b"eA==")), 400, TYPE),
    "quoted-printable": (build((FILE + b"\r\nContent-Transfer-Encoding: Quoted-Printable", b"x")), 400, TYPE),
    "text field of 1 MiB + 1": (build((FIELD, b"x" * (MIB + 1))), 413, TYPE),
    "file cut at half": (build((FILE, b"x" * 1000))[:500], 400, TYPE),
}


@pytest.mark.quiet
@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    body, status, content_type = REFUSED[name]
    with soon(), pytest.raises(ClientError) as caught:
        parse(content_type, body, LIMITS)
    assert caught.value.status == status
    assert 10 < len(str(caught.value)) < 300


ACCEPTED = {
    "no parts": (b"--B--\r\n", []),
    "no CRLF at the end": (ONE[:-2], [b"x"]),
    "padding after boundaries": (ONE.replace(b"--B\r\n", b"--B \t\r\n").replace(b"--B--", b"--B-- "), [b"x"]),
    "preamble and epilogue": (b"hello\r\n" + ONE + b"goodbye", [b"x"]),
    "64 parts": (build(*[(FIELD, b"x")] * 64), [b"x"] * 64),
    "32 files": (build(*[(FILE, b"x")] * 32), [b"x"] * 32),
    "8 header lines": (build((FIELD + more_headers(7), b"x")), [b"x"]),
    "zero-byte file": (build((FILE, b"")), [b""]),
    "no data, no line": (b"--B\r\n" + FIELD + b"\r\n\r\n--B--\r\n", [b""]),
    "text field of 1 MiB": (build((FIELD, b"x" * MIB)), [b"x" * MIB]),
    "large file": (build((FILE, b"\r\n--" * (8 * MIB))), [b"\r\n--" * (8 * MIB)]),
    "near boundaries": (build((FILE, b"\r\n--A\r\n-B\r--B\n--B--B")), [b"\r\n--A\r\n-B\r--B\n--B--B"]),
    "data of line ends": (build((FILE, b"\r\n\r\n")), [b"\r\n\r\n"]),
    "Content-Length of a part": (build((FILE + b"\r\nContent-Length: -7", b"x")), [b"x"]),
    "nested multipart": (
        build((FILE + b"\r\nContent-Type: multipart/mixed; boundary=C", b"--C\r\n\r\nx\r\n--C--")),
        [b"--C\r\n\r\nx\r\n--C--"],
    ),
    "pickle": (build((FILE + b"\r\nContent-Type: application/x-python-pickle", b"cos\n")), [b"cos\n"]),
    "8bit": (build((FILE + b"\r\nContent-Transfer-Encoding: 8BIT", b"x")), [b"x"]),
}


@pytest.mark.quiet
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name: str) -> None:
    body, expected = ACCEPTED[name]
    with soon():
        assert [bytes(part.data) for part in parse(TYPE, body, LIMITS)] == expected


def test_truncation_anywhere_is_refused() -> None:
    body = build((FIELD, b"one"), (FILE + b"\r\nContent-Type: image/png", b"\r\n--x"))[:-2]
    for length in range(len(body)):
        with pytest.raises(ClientError) as caught:
            parse(TYPE, body[:length], LIMITS)
        assert caught.value.status == 400


def test_limits_are_settings() -> None:
    body = build((FIELD, b"x" * 11), (FILE, b"y"))
    for limits in (
        Limits(parts=1),
        Limits(files=0),
        Limits(text_field=10),
        Limits(field_name=0),
        Limits(part_header_bytes=9),
    ):
        with pytest.raises(ClientError) as caught:
            parse(TYPE, body, limits)
        assert caught.value.status == 413


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text/plain", ("text/plain", {})),
        (" Text/HTML ;charset=UTF-8 ", ("text/html", {"charset": "UTF-8"})),
        ('a/b; X="q\\"\\\\r\\s"; y=;', ("a/b", {"x": 'q"\\r\\s', "y": ""})),
        ("application/json;", ("application/json", {})),
        ("application/vnd.api+json; a=b;; c=d", ("application/vnd.api+json", {"a": "b", "c": "d"})),
        ('form-data; name="a b"; filename=é', ("form-data", {"name": "a b", "filename": "é"})),
    ],
)
def test_parse_header(header: str, expected: tuple[str, dict[str, str]]) -> None:
    assert parse_header(header) == expected


MALFORMED = ["", " ", ";", "a b", "a/b/c", "a/b x=y", "a/b; x", "a/b; x =y", "a/b; x= y", 'a/b; x="', "a/b\n"]
MALFORMED += ["a/b; x=y z", "a/b, c/d", "a/b; x=1; X=2", "a/b; x=\0", 'a/b; x="\r\n"', "é/b", 'a/b; x=y"']
MALFORMED += ['a/b; x="y"z', 'a/b; x="' + "\\" * 10**6, "a/b" + ";" * 10**6 + "\0", f"a/b; x={' ' * 10**6}y"]


@pytest.mark.quiet
@pytest.mark.parametrize("header", MALFORMED, ids=lambda header: header[:20])
def test_parse_header_refuses(header: str) -> None:
    with soon(), pytest.raises(ClientError) as caught:
        parse_header(header)
    assert caught.value.status == 400


NAMES = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=40)
DATA = st.lists(st.sampled_from([b"\r", b"\n", b"-", b"B", b"x"])).map(b"".join)
PARTS = st.lists(st.tuples(NAMES, st.none() | NAMES, DATA), max_size=12)


@given(PARTS)
def test_round_trip(fields: list[tuple[str, str | None, bytes]]) -> None:
    def quote(text: str) -> bytes:
        return text.replace("\\", "\\\\").replace('"', '\\"').encode()

    boundary = b"bound-ary"
    parts = []
    for name, filename, data in fields:
        headers = b'Content-Disposition: form-data; name="%s"' % quote(name)
        parts.append((headers if filename is None else headers + b'; filename="%s"' % quote(filename), data))
    found = parse("multipart/form-data; boundary=bound-ary", build(*parts, boundary=boundary), LIMITS)
    assert [(part.name, part.filename, bytes(part.data)) for part in found] == fields


FRAGMENTS = [b"--B", b"--", b"\r\n", FIELD, FILE, b"x", b"\r", b"\n", b":", b" ", b"\0"]


@given(st.lists(st.sampled_from(FRAGMENTS)).map(b"".join))
def test_anything_is_parsed_or_refused(body: bytes) -> None:
    try:
        parse(TYPE, body, LIMITS)
    except ClientError as refused:
        status = refused.status
    else:
        status = 400
    assert status in (400, 413)
