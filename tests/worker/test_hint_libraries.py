"""Hints of numpy, Pillow and pydantic, where the environment has them; and what strangers may send for them."""

from __future__ import annotations

import base64
import io
import struct
import sys
import zlib
from typing import Any, Dict, List, Optional

import pytest

from panglot_worker.errors import ClientError
from support.hints import LIMITS, Annotated, arguments, formed, given, one, read, refused, wrong


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


# numpy


@pytest.fixture(scope="module")
def np() -> Any:
    return pytest.importorskip("numpy")


def npy(np: Any, array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_an_array_may_be_a_file(np: Any) -> None:
    hint = Annotated[np.ndarray, np.float32, (None, 2)]
    for array in (np.ones((3, 2), "f4"), np.asfortranarray(np.arange(6.0).reshape(3, 2)), np.ones((1, 2), ">f8")):
        result = one(hint).of_request("application/octet-stream", npy(np, array), b"", LIMITS)["value"]
        assert result.dtype == np.float32
        assert result.flags.writeable
        assert (result == array).all()


def test_a_hostile_file_of_an_array_is_refused(np: Any) -> None:
    good = npy(np, np.ones(3))
    huge = good.replace(b"(3,), }      ", b"(3333333333,)")
    hostile = [b"", b"\x93NUMPY", good[:-1], good + b"x", huge, good.replace(b"<f8", b"|O8"), good[:20] + b"\xff" * 60]
    hostile.append(npy(np, np.array(["a"])))
    hostile.append(npy(np, np.array([object()], dtype=object)))
    for data in hostile:
        with pytest.raises(ClientError) as raised:
            one(np.ndarray).of_request("application/octet-stream", data or b"?", b"", LIMITS)
        assert raised.value.status == 422


LISTS = [
    ("float32", [[1], [2, 3]]), ("float32", ["1"]), ("float32", [None]), ("float32", [1e300]), ("uint8", [256]), ("uint8", [-1]),
    ("int64", [1.5]), ("int64", [2**63]), ("bool", [1]), ("float64", [True]), ("float64", {"a": 1}), ("float64", "x"),
    ("float64", [[[]], [1]]), ("float64", [{"a": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), LISTS, ids=str)
def test_numbers_that_do_not_fit_are_refused(np: Any, dtype: str, value: Any) -> None:
    assert list(refused(Annotated[np.ndarray, dtype], value)) == [""]


def test_the_type_of_elements_may_come_from_numpy_typing(np: Any) -> None:
    typing = pytest.importorskip("numpy.typing")
    if sys.version_info < (3, 9):
        pytest.skip("there NDArray is not a type")
    assert read(typing.NDArray[np.float32], [[1, 2]]).dtype == np.float32
    assert read(np.ndarray, [1, 2]).dtype.kind == "i"
    assert read(Annotated[np.ndarray, np.dtype("int16"), (-1,)], [1.0]).dtype == np.int16


def test_the_shape_is_in_the_schema(np: Any) -> None:
    schema = one(Annotated[np.ndarray, "uint8", (None, 2)]).schema()["properties"]["value"]
    row = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}, "minItems": 2, "maxItems": 2}
    assert schema == {"type": "array", "items": row}


def test_tensors_are_arguments_too(np: Any) -> None:
    def function(image: np.ndarray, values: List[float], threshold: float = 0.5) -> None: ...

    function.__annotations__.update(image=np.ndarray)
    arrays = {"image": np.ones((2, 2), "f4"), "values": np.array([1.0, 2.0]), "threshold": np.array([0.25])}
    result = arguments(function).of_tensors(arrays)
    assert result["image"] is arrays["image"]
    assert (result["values"], result["threshold"]) == ([1.0, 2.0], 0.25)
    assert wrong(lambda: arguments(function).of_tensors({"image": arrays["image"]})).keys() == {"values"}


# Pillow


@pytest.fixture(scope="module")
def pillow() -> Any:
    return pytest.importorskip("PIL.Image")


def png(width: int, height: int) -> bytes:
    """A picture whose header says this size, with one row of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * (width + 1) if width < 5000 else b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_a_picture_is_read_before_the_script_is_called(pillow: Any) -> None:
    picture = read(pillow.Image, text_of(png(3, 1)))
    assert (picture.size, picture.mode) == ((3, 1), "L")
    raw = one(pillow.Image).of_request("image/png", png(2, 1), b"", LIMITS)["value"]
    assert raw.size == (2, 1)


def test_pictures_that_are_none_are_refused(pillow: Any) -> None:
    for data in (b"", b"GIF89a", png(3, 1)[:40], b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n"):
        assert list(refused(pillow.Image, text_of(data))) == [""]
    assert refused(pillow.Image, text_of(png(60_000, 60_000))) == {"": "is an image with too many pixels"}


# pydantic


@pytest.fixture(scope="module")
def models() -> Dict[str, Any]:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        size: int = pydantic.Field(ge=0)

    class Item(pydantic.BaseModel):
        name: str
        inner: Optional[Inner] = None
        tags: List[str] = []

    Item.__annotations__["inner"] = Optional[Inner]
    return {"Item": Item, "Inner": Inner, "pydantic": pydantic}


def whole(model: Any) -> Any:
    def function(item: Any) -> None: ...

    function.__annotations__["item"] = model
    return function


def test_a_model_takes_the_whole_body(models: Dict[str, Any]) -> None:
    function = whole(models["Inner"])
    assert given(function, {"size": 3})["item"].size == 3
    assert formed(function, b"size=3")["item"].size == 3
    assert list(wrong(lambda: given(function, {"size": -1}))) == ["size"]
    assert list(wrong(lambda: given(function, {"size": 1, "sice": 2}))) == ["sice"]
    assert list(wrong(lambda: given(function, [1]))) == [""]
    assert arguments(function).schema()["properties"]["size"]["minimum"] == 0


def test_a_model_may_say_what_to_do_with_further_fields(models: Dict[str, Any]) -> None:
    pydantic = models["pydantic"]

    class Loose(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="ignore")
        a: int = 0

    assert given(whole(Loose), {"a": 1, "b": 2})["item"].a == 1


def test_a_strict_model_reads_json_as_json(models: Dict[str, Any]) -> None:
    import datetime

    pydantic = models["pydantic"]

    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)
        day: datetime.date

    Strict.model_rebuild(_types_namespace={"datetime": datetime})
    assert given(whole(Strict), {"day": "2024-05-01"})["item"].day == datetime.date(2024, 5, 1)
    assert list(wrong(lambda: given(whole(Strict), {"day": 5}))) == ["day"]


def test_what_pydantic_says_of_fields_counts_for_parameters(models: Dict[str, Any]) -> None:
    hint = Annotated[int, models["pydantic"].Field(ge=1, description="how many")]
    assert refused(hint, 0) == {"": "must be at least 1, not 0"}
    assert one(hint).schema()["properties"]["value"]["description"] == "how many"
