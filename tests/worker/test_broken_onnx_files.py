"""What is said of an ONNX file that is broken inside, or nested beyond what can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot_worker.runtimes.onnx import faults


def field(number: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size >= 128:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 & 127 | 2 | (128 if number > 15 else 0), *([number >> 4] if number > 15 else [])]) + (
        length + bytes([size]) + content
    )


OPSET = field(8, field(1, b"") + bytes([16, 13]))
START = bytes([8, 8])
CUT = b"\x0a\x7f"
"""A field that leads beyond its end."""
BROKEN = {
    "an operator": START + field(7, field(1, CUT)) + OPSET,
    "an operator's attribute": START + field(7, field(1, field(5, CUT))) + OPSET,
    "weights": START + field(7, field(5, CUT)) + OPSET,
    "the version": START + field(7, field(1, b"")) + field(8, CUT),
    "a function": START + field(25, CUT) + OPSET,
    "a name": START + field(7, field(1, field(7, b"\xff\xfe"))) + OPSET,
}


def refuse(content: bytes) -> None:
    raise ValueError("nothing is loaded here")


@pytest.mark.parametrize("part", BROKEN)
def test_a_file_that_is_broken_inside_is_no_whole_file(part: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(BROKEN[part])
    assert "not a complete ONNX file" in faults.wrong(str(path), refuse).problem


def nested(levels: int) -> bytes:
    operator = field(4, b"Identity") + field(7, b"of.somebody")
    for _ in range(levels):
        operator = field(4, b"If") + field(5, field(1, b"then_branch") + field(6, field(1, operator)))
    return START + field(7, field(1, operator)) + OPSET


def test_graphs_that_nest_too_deeply_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(nested(3_000))
    assert "levels deep" in faults.wrong(str(path), refuse).problem


def test_operators_of_graphs_inside_of_others_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(nested(3))
    assert "of.somebody" in faults.wrong(str(path), refuse).problem
