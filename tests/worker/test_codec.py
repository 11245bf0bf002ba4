from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import io
import json
import math
import pathlib
import time
import types
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.codec import Encoded, File, Limits, decode, encode
from panglot_worker.errors import ClientError, EncodeError

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=B"
needs_orjson = pytest.mark.skipif(jsontext.orjson is None, reason="orjson is not installed")
MODES = [pytest.param(True, id="orjson", marks=needs_orjson), pytest.param(False, id="standard")]


@pytest.fixture(params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(jsontext, "orjson", None)


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


def plain(value: Any) -> Any:
    """What a script got, with Files as tuples that can be compared."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return (value.name, value.type, value.bytes) if isinstance(value, File) else value


def part(parameters: str, data: bytes = b"x", *headers: str) -> bytes:
    lines = [f"Content-Disposition: form-data; {parameters}", *headers]
    return b"--B\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + data + b"\r\n"


DECODED = {
    "json": (JSON, b'{"a":[1]}', {"a": [1]}),
    "json with charset": ("Application/JSON; Charset=UTF-8", b"1", 1),
    "json by suffix": ("application/vnd.api+json", b"null", None),
    "json without a type": ("", b' \n{"a":1}', {"a": 1}),
    "number without a type": ("", b"12", 12),
    "not json without a type": ("", b"true enough", ("", "application/octet-stream", b"true enough")),
    "picture without a type": ("", b"\x89PNG", ("", "application/octet-stream", b"\x89PNG")),
    "json as text": ("text/plain; charset=utf-8", b'{"a":1}', ("", "text/plain", b'{"a":1}')),
    "raw": ("image/png", b"\x89PNG", ("", "image/png", b"\x89PNG")),
    "raw empty": ("image/png", b"", ("", "image/png", b"")),
    "other multipart": ("multipart/mixed; boundary=B", b"--B--", ("", "multipart/mixed", b"--B--")),
    "form": (FORM, b"a=1&b=%E5%90%8D+x&c&=d", {"a": "1", "b": "名 x", "c": "", "": "d"}),
    "form with repeats": (FORM, b"a=1&b=2&a=3", {"a": ["1", "3"], "b": "2"}),
    "form with semicolons": (FORM, b"a=1;b=2", {"a": "1;b=2"}),
    "form with raw UTF-8": (FORM, "a=名".encode(), {"a": "名"}),
    "form with encoded signs": (FORM, b"a%3Db=%26%2B%25", {"a=b": "&+%"}),
    "form with empty fields": (FORM, b"&&a=1&", {"a": "1"}),
    "empty form": (FORM, b"", {}),
    "1000 fields": (FORM, b"&".join([b"a=1"] * 1000), {"a": ["1"] * 1000}),
    "json sent by curl -d": (FORM, b' {"a":1}', {"a": 1}),
    "json list sent by curl -d": (FORM + "; charset=utf-8", b"[1]", [1]),
    "multipart": (
        MULTIPART,
        part('name="a"', "名".encode())
        + part('name="f"; filename="x.png"', b"\xff", "Content-Type: Image/PNG; q=1")
        + part('name="f"; filename=""', b"")
        + part('name="n"', b"[1]", "Content-Type: application/json")
        + b"--B--",
        {
            "a": "名",
            "f": [("x.png", "image/png", b"\xff"), ("", "application/octet-stream", b"")],
            "n": "[1]",
        },
    ),
}


@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_decodes(name: str, kind: type) -> None:
    content_type, body, expected = DECODED[name]
    assert plain(decode(content_type, kind(body), Limits())) == expected


REFUSED = {
    "empty json": (JSON, b"", 400),
    "empty without a type": ("", b"", 400),
    "empty json by suffix": ("a/b+json", b"", 400),
    "charset utf-7": (JSON + "; charset=utf-7", b"1", 415),
    "charset utf-16": (JSON + ";charset=UTF-16", "1".encode("utf-16"), 415),
    "charset latin-1": ("a/b+json; charset=iso-8859-1", b"1", 415),
    "broken json without a type": ("", b"{1}", 400),
    "broken json sent by curl -d": (FORM, b"{1}", 400),
    "json too large": (JSON, b"[" + b" " * (32 << 20) + b"]", 413),
    "json too deep": (JSON, b"[" * 65 + b"]" * 65, 400),
    "json claimed to be multipart": (MULTIPART, b'{"a":1}', 400),
    "multipart without boundary": ("multipart/form-data", b"--B--", 400),
    "multipart text that is no text": (MULTIPART, part('name="a"', b"\xff") + b"--B--", 400),
    "not a media type": ("nonsense", b"x", 400),
    "malformed type": ("a/b; c", b"x", 400),
    "10^6 fields": (FORM, b"&".join([b"a=1"] * 10**6), 413),
    "1001 fields": (FORM, b"&".join([b"a=1"] * 1001), 413),
    "form too large": (FORM, b"a=" + b"x" * (32 << 20), 413),
    "percent at the end": (FORM, b"a=%", 400),
    "percent and one digit": (FORM, b"a=%4", 400),
    "percent and no digit": (FORM, b"a=%zz", 400),
    "form that is not UTF-8": (FORM, b"a=%FF", 400),
    "picture as a form": (FORM, b"\x89PNG\r\n\xff\xd8", 400),
}


@pytest.mark.quiet
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_to_decode(name: str) -> None:
    content_type, body, status = REFUSED[name]
    with soon(), pytest.raises(ClientError) as caught:
        decode(content_type, body, Limits())
    assert caught.value.status == status
    assert "empty" not in name or "is empty" in str(caught.value) or status == 413


def test_file() -> None:
    file = File("名.png", "image/png", b"abc")
    assert repr(file) == "File(name='名.png', type='image/png', 3 bytes)"
    assert len(file) == 3
    assert bytes(file) == b"abc"
    assert bool(File("", "", b""))
    with pytest.raises(AttributeError):
        file.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [200, 399, 500])
def test_client_error_is_a_client_error(status: int) -> None:
    assert (ClientError("no").status, str(ClientError("no", 404))) == (400, "no")
    with pytest.raises(ValueError, match=str(status)):
        ClientError("no", status)


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


@dataclasses.dataclass
class Box:
    _left: int
    label: Color
    inner: list[Any]


EAST = datetime.timezone(datetime.timedelta(hours=8))
Pair = collections.namedtuple("Pair", "x y")

ENCODED = [
    (None, b"null"),
    (True, b"true"),
    ("é", '"é"'.encode()),
    ([1, 2.5, "x", None, False], b'[1,2.5,"x",null,false]'),
    ((1, (2, 3)), b"[1,[2,3]]"),
    (("a", "b"), b'["a","b"]'),
    ({"a": {}, "b": []}, b'{"a":{},"b":[]}'),
    ({"é": "名😀\u2028\x7f/"}, '{"é":"名😀\u2028\x7f/"}'.encode()),
    ('\x00\x1f\b\f\n\r\t"\\', rb'"\u0000\u001f\b\f\n\r\t\"\\"'),
    ([-0.0, 0.1, 1e15, 123456.789], b"[-0.0,0.1,1000000000000000.0,123456.789]"),
    ([2**63 - 1, 2**64 - 1, -(2**63)], f"[{2**63 - 1},{2**64 - 1},{-(2**63)}]".encode()),
    ([2**64, -(2**100)], b"[18446744073709551616,-1267650600228229401496703205376]"),
    ({"a": 10**400}, b'{"a":1' + b"0" * 400 + b"}"),
    ({1: "a", 2.5: "b", False: "c", None: "d"}, b'{"1":"a","2.5":"b","false":"c","null":"d"}'),
    ({math.inf: 1, -7: 2, Level.HIGH: 3, Text("t"): 4}, b'{"Infinity":1,"-7":2,"3":3,"t":4}'),
    ({"null": "null", "u": ["null"]}, b'{"null":"null","u":["null"]}'),
    ([Color.RED, Level.HIGH, Text("t")], b'["red",3,"t"]'),
    (Box(1, Color.RED, [Box(2, Color.RED, [])]), None),
    (Pair(1, [2]), b"[1,[2]]"),
    (collections.OrderedDict(b=1, a=2), b'{"b":1,"a":2}'),
    (types.MappingProxyType({"a": (1,)}), b'{"a":[1]}'),
    (collections.UserDict(a=1), b'{"a":1}'),
    ({"t": datetime.datetime(2024, 1, 2, 3, 4, 5, 6)}, b'{"t":"2024-01-02T03:04:05.000006"}'),
    ([datetime.datetime(1, 1, 1, tzinfo=EAST)], b'["0001-01-01T00:00:00+08:00"]'),
    ([datetime.date(2024, 1, 2), datetime.time(3, 4)], b'["2024-01-02","03:04:00"]'),
    ([pathlib.PurePosixPath("/a/b"), uuid.UUID(int=1)], b'["/a/b","00000000-0000-0000-0000-000000000001"]'),
    ([b"\xff\x00", bytearray(b"a"), memoryview(b"b")], b'["/wA=","YQ==","Yg=="]'),
    ([File("n", "t", b"c")], b'["Yw=="]'),
]


@pytest.mark.parametrize(("value", "text"), ENCODED, ids=lambda item: repr(item)[:40])
def test_encodes_json(value: Any, text: bytes | None) -> None:
    inner = b'{"_left":2,"label":"red","inner":[]}'
    text = text or b'{"_left":1,"label":"red","inner":[' + inner + b"]}"
    assert encode(value) == (JSON, text, "")
    assert encode({"a": [value]}) == (JSON, b'{"a":[' + text + b"]}", "")


@pytest.mark.parametrize(
    ("value", "content_type", "body"),
    [
        (b"\xff", "application/octet-stream", b"\xff"),
        (bytearray(b"a"), "application/octet-stream", b"a"),
        (memoryview(b"a"), "application/octet-stream", b"a"),
        ((b"<svg/>", "image/svg+xml; charset=utf-8"), "image/svg+xml; charset=utf-8", b"<svg/>"),
        ((memoryview(b"a"), "a/b"), "a/b", b"a"),
        (File("x", "image/png", b"a"), "image/png", b"a"),
        (File("x", "", b"a"), "application/octet-stream", b"a"),
        (File("x", "a/b\r\nX: y", b"a"), "application/octet-stream", b"a"),
    ],
)
def test_encodes_raw(value: Any, content_type: str, body: bytes) -> None:
    assert encode(value) == Encoded(content_type, body, "")
    with pytest.raises(EncodeError, match="larger than 0 bytes"):
        encode(value, limits=Limits(output_bytes=0))


@pytest.mark.parametrize("content_type", ["", "nonsense", "a/b\r\nX: y", "a/é"])
def test_content_types_are_checked(content_type: str) -> None:
    with pytest.raises(EncodeError, match="not a content type"):
        encode((b"x", content_type))


NAN_VALUES = [
    (math.nan, b"null", b"NaN", 1, "$"),
    ([1, math.nan, math.inf, -math.inf], b"[1,null,null,null]", b"[1,NaN,Infinity,-Infinity]", 3, "$[1]"),
    ({"a": None, "b": [math.nan]}, b'{"a":null,"b":[null]}', b'{"a":null,"b":[NaN]}', 1, "$.b[0]"),
    ([[1.0], (math.inf, "x")], b'[[1.0],[null,"x"]]', b'[[1.0],[Infinity,"x"]]', 1, "$[1][0]"),
    ({"u": "u" * 9, "v": math.nan}, b'{"u":"uuuuuuuuu","v":null}', b'{"u":"uuuuuuuuu","v":NaN}', 1, "$.v"),
]


@pytest.mark.parametrize(("value", "null", "platform", "count", "path"), NAN_VALUES, ids=range(5))
def test_nan(value: Any, null: bytes, platform: bytes, count: int, path: str) -> None:
    assert encode(value) == (JSON, null, f"nan: {count} values replaced by null")
    assert encode(value, nan="platform") == (JSON, platform, "")
    with pytest.raises(EncodeError) as caught:
        encode(value, nan="error")
    assert caught.value.path == path


def cyclic_list() -> Any:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def cyclic_dict() -> Any:
    value: dict[str, Any] = {"a": 1}
    value["self"] = [value]
    return {"result": value}


def deep(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def shared(levels: int) -> Any:
    value: Any = [1.0] * 10
    for _ in range(levels):
        value = [value] * 10
    return value


NOT_ENCODED = [
    ({1, 2}, "$: JSON cannot hold a value of type set"),
    ({"result": [1, 2, 3, {"box": {1}}]}, "$.result[3].box: JSON cannot hold a value of type set"),
    ([{"a b": object()}], "$[0]['a b']: JSON cannot hold a value of type object"),
    ({"a": Pair(1, 2j)}, "$.a[1]: JSON cannot hold a value of type complex"),
    ([iter([])], "$[0]: JSON cannot hold a value of type list_iterator"),
    ([Box], "$[0]: JSON cannot hold a value of type type"),
    ({"a": {(1, 2): 3}}, "$.a[(1, 2)]: its key is neither text nor a number, but a tuple"),
    ({b"a": 1}, "$[b'a']: its key is neither text nor a number, but a bytes"),
    (["a", "\ud800"], "$[1]: its text holds a lone surrogate"),
    ({"\ud800": 1}, "lone surrogate"),
    ({"a": deep(64)}, "deeper than 64 levels"),
    (deep(65), "deeper than 64 levels"),
    (deep(300), "deeper than 64 levels"),
    (deep(10**5), "deeper than 64 levels"),
    (cyclic_list(), "contains itself"),
    (cyclic_dict(), "contains itself"),
    ([0.5] * 200000 + [{"x": {1}}] + [0.5] * 200000, "$[200000].x: JSON cannot hold"),
    ({"rows": [[0.5] * 1000] * 300 + [[0.5, {1}]]}, "$.rows[300][1]: JSON cannot hold"),
]


@pytest.mark.quiet
@pytest.mark.parametrize(("value", "words"), NOT_ENCODED, ids=range(len(NOT_ENCODED)))
def test_refuses_to_encode(value: Any, words: str) -> None:
    with soon(), pytest.raises(EncodeError) as caught:
        encode(value)
    assert words in str(caught.value)
    assert caught.value.status == 500
    assert not isinstance(caught.value, ClientError)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 64, 100])
def test_output_depth_limit_is_exact(depth: int) -> None:
    limits = Limits(output_depth=depth)
    assert encode(deep(depth), "", limits).body == b"[" * depth + b"1" + b"]" * depth
    assert encode(deep(depth, None), "", limits).body == b"[" * depth + b"null" + b"]" * depth
    for leaf in (1, None, math.nan, []):
        with pytest.raises(EncodeError, match=f"deeper than {depth} levels"):
            encode(deep(depth if leaf == [] else depth + 1, leaf), "", limits)


def test_depth_beyond_the_recursion_limit_is_an_error() -> None:
    with pytest.raises(EncodeError, match="nested deeper"):
        encode(deep(5000, math.nan), "", Limits(output_depth=10**6))


SIZES = [
    (["a" * 10], 14),
    ({"a": "b"}, 9),
    ([1.5] * 100, 401),
    ([0.1] * 300000, 4 * 300000 + 1),
    ({"a": [[0.1] * 1000] * 300, "b": ["x" * 1000] * 2000}, None),
    ([{"k": [1] * 100000}] * 10, 10 * (200001 + 6) + 11),
    ({str(i): 0.5 for i in range(200000)}, None),
    ([math.nan] * 300000, 300000 * 5 + 1),
]


@pytest.mark.parametrize(("value", "size"), SIZES, ids=range(len(SIZES)))
def test_size_limit_is_exact(value: Any, size: int | None) -> None:
    text = encode(value).body
    assert json.loads(text) == json.loads(json.dumps(value).replace("NaN", "null"))
    assert size is None or len(text) == size
    assert encode(value, "", Limits(output_bytes=len(text))).body == text
    with pytest.raises(EncodeError, match=f"larger than {len(text) - 1} bytes"):
        encode(value, "", Limits(output_bytes=len(text) - 1))


HUGE = {
    "10^7 floats": lambda: [0.1234567890123] * 10**7,
    "10^7 floats in a dict": lambda: {"a": {"b": {"c": [0.1234567890123] * 10**7}}},
    "strings": lambda: [["x" * 10**6] * 1000] * 2,
    "images": lambda: [{"image": "x" * (16 << 20)}] * 100,
    "10^9 shared": lambda: shared(8),
    "10^61 shared": lambda: shared(60),
    "bytes": lambda: b"x" * (9 << 20),
}


@pytest.mark.quiet
@pytest.mark.parametrize("name", HUGE)
def test_too_much_output_stops_early(name: str) -> None:
    value = HUGE[name]()
    with soon(), pytest.raises(EncodeError, match="larger than 8388608 bytes"):
        encode(value, "", Limits(output_bytes=8 << 20))


class Tensor:
    """What encode knows of a framework's tensor: it must be detached and moved before it can be read."""

    dtype = "framework.float32"

    def __init__(self, values: Any, ready: int = 0, lost: bool = False) -> None:
        self.values = values
        self.ready = ready
        self.lost = lost

    def detach(self) -> Tensor:
        return Tensor(self.values, self.ready + 1, self.lost)

    def cpu(self) -> Tensor:
        if self.lost:
            raise RuntimeError("lost")
        return Tensor(self.values, self.ready + 1)

    def tolist(self) -> Any:
        assert self.ready == 2
        return self.values


class Eager:
    """A tensor that only has numpy()."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def numpy(self) -> Any:
        return self.values


def test_encodes_tensors() -> None:
    value = {"a": Tensor([[1.5, math.nan]]), "b": Tensor(7), "c": Eager(b"a"), "d": Eager(2.5)}
    encoded = encode(value)
    assert encoded.body == b'{"a":[[1.5,null]],"b":7,"c":"YQ==","d":2.5}'
    assert encoded.warning == "nan: 1 values replaced by null"
    assert encode(Tensor([1, 2])).body == b"[1,2]"
    with pytest.raises(EncodeError, match=r"\$\.a: a value of type .*Tensor cannot be made a list: lost"):
        encode({"a": Tensor(1, lost=True)})


def test_encodes_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    same = {
        b"[1.5,-0.0]": numpy.array([1.5, -0.0], "f2"),
        b"[0.10000000149011612]": numpy.array([0.1], "f4"),
        b"[[0,1],[2,3]]": numpy.arange(4).reshape(2, 2),
        b"[[0,2],[1,3]]": numpy.arange(4).reshape(2, 2).T,
        b"[1,258]": numpy.array([1, 258], ">i4"),
        b"[18446744073709551615]": numpy.array([2**64 - 1], "u8"),
        b"[9223372036854775807]": numpy.array([2**63 - 1]),
        b"[true,false]": numpy.array([True, False]),
        b"7.25": numpy.array(7.25),
        b"[]": numpy.array([]),
        b'["a","\xc3\xa9"]': numpy.array(["a", "é"]),
        b'["YQ=="]': numpy.array([b"a"]),
        b'[1,[2,"x"],null]': numpy.array([1, [2, numpy.str_("x")], None], dtype=object),
        b'["2024-01-02"]': numpy.array(["2024-01-02"], "M8[D]"),
        b"[1.5]": numpy.array([1.5], numpy.longdouble),
        b"[1,null]": numpy.ma.array([1, 2], mask=[False, True]),
        b"[3,0.5,true,2.5]": [numpy.int64(3), numpy.float64(0.5), numpy.bool_(True), numpy.float16(2.5)],
        b"[0.25]": [numpy.longdouble(0.25)],
        b'{"7":1,"8":2,"0.5":3}': {numpy.int64(7): 1, numpy.uint8(8): 2, numpy.float64(0.5): 3},
    }
    for text, value in same.items():
        assert encode(value) == (JSON, text, "")
        assert encode({"a": value}).body == b'{"a":' + text + b"}"
    nan = numpy.array([numpy.nan, 1, numpy.inf], "f4")
    assert encode({"a": nan}) == (JSON, b'{"a":[null,1.0,null]}', "nan: 2 values replaced by null")
    assert encode([numpy.float32("nan")], nan="platform").body == b"[NaN]"
    for bad in (numpy.zeros(2, [("x", "i4")]), numpy.zeros(2, "c8"), numpy.zeros(2, "m8[s]")):
        with pytest.raises(EncodeError, match=r"^the result cannot be sent: \$\.a: "):
            encode({"a": bad})
    with soon(), pytest.raises(EncodeError, match="larger"):
        encode({"a": numpy.zeros((10**4, 10**5), "u1")}, "", Limits(output_bytes=8 << 20))


def test_encodes_pictures() -> None:
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.new("RGBA", (3, 2))
    for accept, content_type in {
        "": "image/png",
        "*/*": "image/png",
        "image/*": "image/png",
        "image/jpeg": "image/jpeg",
        "image/png, image/jpeg": "image/png",
        "image/jpeg, */*;q=0.8": "image/jpeg",
        "image/png;q=0.5,image/*": "image/jpeg",
        "image/jpeg;q=nonsense": "image/png",
        ";;,,q=": "image/png",
    }.items():
        encoded = encode(image, accept)
        assert encoded.content_type == content_type
        assert image_module.open(io.BytesIO(encoded.body)).size == (3, 2)
    for mode in ("1", "L", "LA", "P", "RGB", "I;16", "F", "CMYK", "YCbCr", "HSV"):
        for accept in ("", "image/jpeg"):
            assert encode(image_module.new(mode, (3, 2)), accept).body
    assert json.loads(encode({"a": image}).body)["a"].startswith("data:image/png;base64,")
