"""What goes from one pool to the next comes out as it went in, and arena are free when nobody looks any more."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from panglot.engine.memory.buffers import Arena
from panglot_worker.items.pipelines.handoff import CannotHandOver, pack, unpack
from panglot_worker.line import wire
from panglot_worker.line.sharing import SharedMemory


class Between:
    """Two workers and the arena between them."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.arena = Arena(2 * size, size)
        self.buffer = self.arena.take(size)
        self.before = SharedMemory(writes=self.arena.for_worker())
        self.after = SharedMemory(reads=self.arena.for_worker(), private=True)

    def put(self, value: Any) -> int:
        """Leave a value in the buffer; its size."""
        pieces = pack(value)
        assert self.buffer is not None
        assert self.before.put(self.buffer.address, pieces)
        return sum(map(len, pieces))

    def look(self, size: int, item: int = 7) -> Any:
        assert self.buffer is not None
        return unpack(self.after.look(item, self.buffer.address, size))

    def send(self, value: Any, shared: bool = True, item: int = 7) -> Any:
        return self.look(self.put(value), item) if shared else unpack(b"".join(pack(value)))


@pytest.fixture
def between() -> Iterator[Between]:
    made = Between()
    yield made
    made.arena.close()


VALUES = {
    "nothing": None,
    "a dict": {"a": [1, 2.5, "ü", b"x", None], "b": {"c": (1, 2)}},
    "a small array": np.arange(10.0),
    "a picture": np.arange(1 * 3 * 100 * 100, dtype=np.float32).reshape(1, 3, 100, 100),
    "several": {"a": np.ones((50, 50)), "b": [np.zeros(30_000, np.uint8), "text"], "c": np.array(3.0)},
    "not contiguous": np.arange(60_000.0).reshape(200, 300)[:, ::2],
    "by columns": np.asfortranarray(np.arange(60_000.0).reshape(200, 300)),
    "long bytes": b"x" * 100_000,
    "text objects": np.array(["a", None, "c"], dtype=object),
    "no elements": np.zeros((0, 5)),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("shared", [False, True])
def test_values_come_out_as_they_went_in(name: str, shared: bool, between: Between) -> None:
    np.testing.assert_equal(between.send(VALUES[name], shared), VALUES[name])


@pytest.mark.parametrize("shared", [False, True])
def test_arrays_can_be_worked_on_in_place(shared: bool, between: Between) -> None:
    array = between.send(np.ones(50_000), shared)
    array *= 3
    assert array.sum() == 150_000


def test_the_second_reader_does_not_see_what_the_first_did_in_place(between: Between) -> None:
    size = between.put(np.ones(50_000))
    first = between.look(size)
    first *= 3
    between.after = SharedMemory(reads=between.arena.for_worker(), private=True)
    assert between.look(size).sum() == 50_000


def test_a_buffer_used_again_shows_what_is_new(between: Between) -> None:
    """Pages the first item wrote are private copies: the second must not see them."""
    for number in range(1, 6):
        array = between.send(np.full(50_000, float(number)), item=number)
        assert (array == number).all()
        array[:] = -1
        del array
        assert between.after.settled() == [number]


def test_a_buffer_is_free_only_when_nothing_refers_to_it(between: Between) -> None:
    array = between.send({"a": np.ones(50_000), "b": np.zeros(50_000)})
    kept = array["a"][10:20]
    del array
    assert between.after.settled() == []
    assert kept.sum() == 10
    del kept
    assert between.after.settled() == [7]
    assert between.after.settled() == []


def test_what_a_script_keeps_in_a_cycle_is_free_after_collection(between: Between) -> None:
    array = between.send(np.ones(50_000))
    cycle: list[Any] = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert between.after.settled() == [7]


def test_what_does_not_fit_is_not_put(between: Between) -> None:
    assert between.buffer is not None
    assert not between.before.put(between.buffer.address, pack(np.ones(200_000)))
    assert not SharedMemory().put(between.buffer.address, pack(1))


@pytest.mark.rest("torch")
def test_tensors_travel_like_arrays(between: Between) -> None:
    import torch

    tensor = between.send(torch.arange(50_000, dtype=torch.float32).reshape(2, -1))
    assert torch.equal(tensor, torch.arange(50_000, dtype=torch.float32).reshape(2, -1))
    tensor.add_(1)
    for other in (torch.ones(3, 4).T, torch.ones(3, requires_grad=True), torch.ones(3, dtype=torch.bfloat16)):
        value = between.send([other], shared=False)
        assert torch.equal(value[0], other)
        assert value[0].dtype == other.dtype


@pytest.mark.parametrize("value", [lambda: 1, open(os.devnull), (n for n in range(3))], ids=["lambda", "file", "gen"])  # noqa: SIM115
def test_what_cannot_be_sent_says_so(value: Any) -> None:
    with pytest.raises(CannotHandOver, match="cannot be sent to another process"):
        pack(value)


def test_a_buffer_that_is_none_is_a_broken_stream(between: Between) -> None:
    assert between.buffer is not None
    with pytest.raises(wire.WireError, match="no buffer"):
        between.after.look(1, between.arena.length + (between.buffer.address & wire.ORDER_BITS), 10)
    with pytest.raises(wire.WireError, match="is in a buffer of"):
        between.after.look(1, between.buffer.address, 2 << 20)
    with pytest.raises(wire.WireError, match="no buffer"):
        SharedMemory().look(1, between.buffer.address, 10)
