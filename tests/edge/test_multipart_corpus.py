"""Corpus 4d: forms and uploads that are hostile, broken or only strange."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.corpus import Case, Pair, accepted, check_alone, check_in_a_batch, named, pair, refused, request
from support.server import Server, serving
from support.wire import Wire

MIB = 1 << 20
FORM = "multipart/form-data; boundary=B"
URLENCODED = "application/x-www-form-urlencoded"
END = b"--B--\r\n"


def part(head: str | bytes, data: bytes = b"x") -> bytes:
    raw = head.encode() if isinstance(head, str) else head
    return b"--B\r\nContent-Disposition: form-data; " + raw + b"\r\n\r\n" + data + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + END


def field(name: str, data: bytes = b"x") -> bytes:
    return part(f'name="{name}"', data)


def upload(filename: str, data: bytes = b"x", more: str = "") -> bytes:
    return part(f'name="f"; filename="{filename}"{more}', data)


def many(count: int, headers: bytes = b'Content-Disposition: form-data; name="a"') -> Callable[[], bytes]:
    return lambda: (b"--B\r\n" + headers + b"\r\n\r\nx\r\n") * count + END


def ok(body: bytes | Callable[[], bytes], got: object = ..., kind: str = FORM, heavy: bool = False) -> Case:
    return accepted(body, got, content_type=kind, heavy=heavy)


def no(body: bytes | Callable[[], bytes], *statuses: int, kind: str = FORM, heavy: bool = False) -> Case:
    return refused(body, *statuses, content_type=kind, heavy=heavy)


def boundary(value: str) -> str:
    return f"multipart/form-data; boundary={value}"


def one(**fields: object) -> dict[str, object]:
    return {"keys": len(fields), "first": fields}


def file(name: str, kind: str = "application/octet-stream", size: int = 1) -> dict[str, object]:
    return one(f={"name": name, "type": kind, "size": size})


GOOD = form(field("a"))
HEAD = 'name="a"'
PICKLE = b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x94\x93\x94."
NEAR = b"\r\n--" + b"B" * 69

CASES = {
    "68 no boundary": no(GOOD, kind="multipart/form-data"),
    "68 an empty boundary": no(GOOD, kind=boundary("")),
    "68 an empty quoted boundary": no(GOOD, kind=boundary('""')),
    "68 70 characters": ok(GOOD.replace(b"--B", b"--" + b"B" * 70), one(a="x"), kind=boundary("B" * 70)),
    "68 71 characters": no(GOOD.replace(b"--B", b"--" + b"B" * 71), kind=boundary("B" * 71)),
    "68 10,000 characters": no(GOOD, 431, kind=boundary("B" * 10_000)),
    "68 a quoted boundary": ok(GOOD, one(a="x"), kind=boundary('"B"')),
    "68 half a quote": no(GOOD, kind=boundary('"B')),
    "68 two boundaries": no(GOOD, kind=boundary("B; boundary=C")),
    "68 a boundary with a bracket": no(GOOD, kind=boundary("[B]")),
    "68 a boundary that ends with a blank": no(GOOD, kind=boundary('"B "')),
    "68 a boundary beyond ASCII": no(GOOD, kind=boundary("Bé")),
    "68 a line end inside": no(GOOD, kind="multipart/form-data;\r\n boundary=B"),
    "69 the boundary never appears": no(b"x" * 10_000),
    "69 only as part of a line": no(b"x--B\r\nx"),
    "70 64 parts": ok(many(64)),
    "70 65 parts": no(many(65), 413),
    "70 100,000 parts": no(many(100_000), 413, heavy=True),
    "70 33 files": no(many(33, b'Content-Disposition: form-data; name="a"; filename="b"'), 413),
    "71 100,000 headers": no(lambda: b"--B\r\n" + b"X: 1\r\n" * 100_000 + b"\r\nx\r\n" + END, 400, 413),
    "71 9 headers": no(b"--B\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(9)) + b"\r\nx\r\n" + END, 400, 413),
    "71 a header of 1 MiB": no(lambda: form(part(HEAD + "; x=" + "y" * MIB)), 413),
    "71 headers that never end": no(lambda: b"--B\r\nX: " + b"y" * MIB, 413),
    "71 headers that just stop": no(b'--B\r\nContent-Disposition: form-data; name="a"'),
    "71 no headers": no(b"--B\r\n\r\nx\r\n" + END),
    "71 a header twice": no(form(part(HEAD + '\r\nContent-Disposition: form-data; name="b"'))),
    "71 a folded header": no(form(part(HEAD + ";\r\n filename=b"))),
    "71 a bare LF": no(GOOD.replace(b"\r\n", b"\n")),
    "71 a header without a colon": no(form(part(HEAD + "\r\nnonsense"))),
    "72 a short preamble": ok(b"hello\r\n" + GOOD, one(a="x")),
    "72 a preamble of 1 MiB": no(lambda: b"x" * MIB + b"\r\n" + GOOD, 413),
    "72 a short epilogue": ok(GOOD + b"goodbye", one(a="x")),
    "72 an epilogue of 60 MiB": no(lambda: GOOD + b"x" * (60 * MIB), 413, heavy=True),
    "73 nothing but line ends": no(lambda: b"\r\n" * (4 * MIB), heavy=True),
    "73 nothing but carriage returns": no(lambda: b"\r" * (8 * MIB), heavy=True),
    "73 near-boundaries": no(lambda: NEAR * 100_000, kind=boundary("B" * 70), heavy=True),
    "73 near-boundaries in a file": ok(
        lambda: GOOD.replace(b"--B", b"--" + b"B" * 70).replace(b"\r\nx\r\n", b"\r\n" + NEAR * 10_000 + b"\r\n"),
        one(a={"characters": len(NEAR) * 10_000}), kind=boundary("B" * 70), heavy=True,
    ),
    "74 no final boundary": no(field("a")),
    "74 half a final boundary": no(field("a") + b"--B-"),
    "74 text after the final boundary": no(field("a") + b"--B--x"),
    "75 a field twice": ok(form(field("a", b"1"), field("a", b"2")), one(a={"length": 2, "first": ["1", "2"]})),
    "75 a field 1,000 times": no(many(1000), 413),
    "76 no name": no(form(part('filename="b"'))),
    "76 an empty name": no(form(field(""))),
    "76 a name of 257 bytes": no(form(field("n" * 257)), 413),
    "76 no disposition": no(b"--B\r\nContent-Type: text/plain\r\n\r\nx\r\n" + END),
    "76 another disposition": no(GOOD.replace(b"form-data;", b"attachment;")),
    "76 an empty file name": ok(form(upload("")), file("")),
    "76 a way up": ok(form(upload("../../etc/passwd")), file("../../etc/passwd")),
    "76 an absolute path": ok(form(upload("/etc/passwd")), file("/etc/passwd")),
    "76 a Windows path": ok(form(upload(r"C:\temp\x.png")), file(r"C:\temp\x.png")),
    "76 a NUL": no(form(upload("a\0b"))),
    "76 an encoded NUL": no(form(part("name=\"f\"; filename*=utf-8''a%00b"))),
    "76 an encoded line end": no(form(part("name=\"f\"; filename*=utf-8''a%0d%0aX:%20y"))),
    "76 a name of 256 bytes": no(form(upload("a" * 256))),
    "76 a name of 10 KB": no(form(upload("a" * 10_240)), 413),
    "76 a right-to-left override": ok(form(upload("a\u202egnp.exe")), file("a\u202egnp.exe")),
    "76 HTML": ok(form(upload("<img src=x onerror=alert(1)>.png")), file("<img src=x onerror=alert(1)>.png")),
    "76 two names that disagree": ok(
        form(upload("a.png", more="; filename*=utf-8''b.png")), file("b.png")
    ),
    "76 a name in another charset": no(form(part("name=\"f\"; filename*=iso-8859-1''%e9"))),
    "76 a name in pieces": no(form(part('name="f"; filename*0="a"; filename*1="b"'))),
    "76 a name that is not UTF-8": no(form(part(b'name="f"; filename="\xff\xfe"'))),
    "76 a name with an escape sequence": no(form(upload("a\x1b[31mb"))),
    "77 a form within": ok(
        form(upload("a", b"--C\r\n\r\nx\r\n--C--", "\r\nContent-Type: multipart/mixed; boundary=C")),
        file("a", "multipart/mixed", 15),
    ),
    "78 base64": no(form(part(HEAD + "\r\nContent-Transfer-Encoding: base64", b"eA=="))),
    "78 quoted-printable": no(form(part(HEAD + "\r\nContent-Transfer-Encoding: quoted-printable", b"=78"))),
    "78 binary": ok(form(part(HEAD + "\r\nContent-Transfer-Encoding: binary")), one(a="x")),
    "79 a length of its own": ok(form(part(HEAD + "\r\nContent-Length: 1")), one(a="x")),
    "79 a wrong length": ok(form(part(HEAD + "\r\nContent-Length: 1000000")), one(a="x")),
    "79 a negative length": ok(form(part(HEAD + "\r\nContent-Length: -1")), one(a="x")),
    "80 an empty file": ok(form(upload("a", b"")), file("a", size=0)),
    "80 an empty field": ok(form(field("a", b"")), one(a="")),
    "80 no parts": ok(END, {"keys": 0, "first": {}}),
    "80 an empty body": no(b""),
    "81 a text field of 1 MiB": ok(lambda: form(field("a", b"x" * MIB)), one(a={"characters": MIB})),
    "81 a text field beyond 1 MiB": no(lambda: form(field("a", b"x" * (MIB + 1))), 413),
    "81 a text field that is not text": no(form(field("a", b"\xff\xfe"))),
    "81 a file of 60 MiB": ok(
        lambda: form(upload("a", b"x" * (60 * MIB))), file("a", size=60 * MIB), heavy=True
    ),
    "83 a form": ok(b"a=1&b=%41+c", one(a="1", b="A c"), kind=URLENCODED),
    "83 a million fields": no(lambda: b"a=1&" * 1_000_000, 413, kind=URLENCODED, heavy=True),
    "83 1,001 fields": no(b"&".join(b"a%d=1" % n for n in range(1001)), 413, kind=URLENCODED),
    "83 semicolons": ok(b"a=1;b=2", one(a="1;b=2"), kind=URLENCODED),
    "83 a percent sign at the end": no(b"a=1%", kind=URLENCODED),
    "83 a bad percent": no(b"a=%zz", kind=URLENCODED),
    "83 not UTF-8": no(b"a=%ff", kind=URLENCODED),
    "83 only separators": ok(b"&&&&", {"keys": 0, "first": {}}, kind=URLENCODED),
    "84 a pickle": ok(
        form(upload("a", PICKLE, "\r\nContent-Type: application/x-python-pickle")),
        file("a", "application/x-python-pickle", len(PICKLE)),
    ),
    "84 a pickle as the body": ok(
        PICKLE, {"name": "", "type": "application/x-pickle", "size": len(PICKLE)}, kind="application/x-pickle"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair("edge_batch", tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture(scope="module")
def waiting() -> Iterator[Server]:
    with serving("edge_batch", "--max-wait-ms", "150", "--max-batch", "8") as running:
        yield running


@pytest.mark.parametrize(**named(CASES))
def test_alone_and_in_a_loop(servers: Pair, case: Case) -> None:
    check_alone(servers, case)


@pytest.mark.parametrize(**named(CASES))
def test_in_a_batch_of_good_requests(waiting: Server, case: Case) -> None:
    check_in_a_batch(waiting, case)


def test_a_form_cut_at_every_byte(servers: Pair) -> None:
    """Truncated in each state of the parser: always 400, and the next request is a new one."""
    whole = b"hello\r\n" + form(upload("a.png", b"\r\n--x", "\r\nContent-Type: image/png"), field("b", b"y"))
    with Wire(servers.fast) as client:
        for length in range(len(whole) - 2):
            client.send(request(no(whole[:length])))
            assert client.reply().status == 400, whole[:length]
        for length in (-2, None):
            client.send(request(ok(whole[:length])))
            assert client.reply().status == 200


def test_a_file_up_to_the_limit_of_the_body() -> None:
    """A file that grows to the limit is taken; one byte more is refused."""
    around = len(form(upload("a", b"")))
    with serving("edge_batch", "--max-body", "100000") as server:
        for size, status in ((100_000 - around - 1, 200), (100_000 - around, 200), (100_000 - around + 1, 413)):
            with Wire(server) as client:
                client.send(request(ok(form(upload("a", b"x" * size)))))
                assert client.reply().status == status
