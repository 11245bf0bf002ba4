"""The promise: a body of nothing but nested arrays costs what its parser costs, not several times that."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panglot_worker.bodies import jsondepth, jsontext
from panglot_worker.errors import ClientError
from support.raw import post
from support.server import serving
from support.wire import Wire

MIB = 1 << 20


def nested(size: int, depth: int) -> bytes:
    """About so many bytes of arrays, as deep as that all in all."""
    one = b"[" * (depth - 1) + b"]" * (depth - 1)
    return b"[" + b",".join([one] * (size // len(one))) + b"]"


SHAPES = {
    "deep": nested(4 * MIB, 62),
    "deep combs": b"[" + b",".join([b"[" * 40 + b",".join([b"[]"] * 9) + b"]" * 40] * 35_000) + b"]",
    "teeth of all lengths": b"[" + b",".join(b"[" * n + b"]" * n for _ in range(1000) for n in range(1, 60)) + b"]",
    "half deep, half wide": b"[" + nested(2 * MIB, 61) + b"," + b",".join([b"[[]]"] * 350_000) + b"]",
}


def cpu(work: Callable[[], Any]) -> float:
    """Seconds of processor time, which neighbours do not take part in."""
    gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before


@pytest.mark.quiet
@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.skipif(jsontext.orjson is None, reason="orjson is not installed")
def test_guards_cost_less_than_parsing(text: bytes) -> None:
    gc.disable()
    try:
        parsing = min(cpu(lambda: jsontext.orjson.loads(text)) for _ in range(2))
    finally:
        gc.enable()
    assert min(cpu(lambda: jsontext.loads(text, 64)) for _ in range(2)) < 2.2 * parsing
    assert gc.isenabled()


def test_the_limit_is_exact() -> None:
    for depth in (63, 64, 65, 66):
        text = b"[" + nested(MIB, 20) + b"," + nested(MIB, depth - 1) + b"]"
        assert (jsondepth.too_deep(text, 64) >= 0) == (depth > 64)
        if depth > 64:
            with pytest.raises(ClientError, match="nested deeper than 64 levels"):
                jsontext.loads(text, 64)
        else:
            assert len(jsontext.loads(text, 64)) == 2


def test_a_server_answers_it(tmp_path: Path) -> None:
    """A quarter of what a body may hold: four million lists."""
    (tmp_path / "model.py").write_text("def predict(request):\n    return len(request)\n")
    with serving(tmp_path) as server, Wire(server, patience=60) as client:
        text = nested(8 * MIB, 62)
        client.send(post(text))
        reply = client.reply()
        assert (reply.status, int(reply.body)) == (200, text.count(b",") + 1)
