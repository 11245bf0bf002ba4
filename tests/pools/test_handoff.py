"""What goes from one pool to the next comes out as it went in, and slots are free when nobody looks any more."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from panglot.engine.berths import Berths
from panglot_worker import wire
from panglot_worker.handoff import CannotHandOver, Handoff, reading, writing


class Between:
    """Two workers and the slots between them."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.berths = Berths(size, count=2)
        self.before = Handoff(writes=writing(*self.berths.for_worker()))
        self.after = Handoff(reads=reading(*self.berths.for_worker()))

    def send(self, value: Any, berth: int = 1, item: int = 7) -> tuple[Any, bool]:
        body, shared = self.before.pack(value, berth)
        return self.after.unpack(item, bytes(body)), shared


@pytest.fixture
def between() -> Iterator[Between]:
    made = Between()
    yield made
    made.berths.close()


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
@pytest.mark.parametrize("berth", [0, 1])
def test_values_come_out_as_they_went_in(name: str, berth: int, between: Between) -> None:
    value, shared = between.send(VALUES[name], berth)
    np.testing.assert_equal(value, VALUES[name])
    large = name in ("a picture", "not contiguous", "by columns", "long bytes")
    assert shared == (bool(berth) and large)


@pytest.mark.parametrize("berth", [0, 1])
def test_arrays_can_be_worked_on_in_place(berth: int, between: Between) -> None:
    array, _ = between.send(np.ones(50_000), berth)
    array *= 3
    assert array.sum() == 150_000


def test_the_second_reader_does_not_see_what_the_first_did_in_place(between: Between) -> None:
    body, shared = between.before.pack(np.ones(50_000), 1)
    assert shared
    first = between.after.unpack(1, body)
    first *= 3
    other = Handoff(reads=reading(*between.berths.for_worker()))
    assert other.unpack(1, body).sum() == 50_000


def test_a_slot_used_again_shows_what_is_new(between: Between) -> None:
    """Pages the first item wrote are private copies: the second must not see them."""
    for number in range(1, 6):
        array, shared = between.send(np.full(50_000, float(number)), item=number)
        assert shared
        assert (array == number).all()
        array[:] = -1
        del array
        assert between.after.settled() == [number]


def test_a_slot_is_free_only_when_nothing_refers_to_it(between: Between) -> None:
    array, _ = between.send({"a": np.ones(50_000), "b": np.zeros(50_000)})
    kept = array["a"][10:20]
    del array
    assert between.after.settled() == []
    assert kept.sum() == 10
    del kept
    assert between.after.settled() == [7]
    assert between.after.settled() == []


def test_what_a_script_keeps_in_a_cycle_is_free_after_collection(between: Between) -> None:
    array, _ = between.send(np.ones(50_000))
    cycle: list[Any] = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert between.after.settled() == [7]


def test_what_does_not_fit_goes_by_the_socket() -> None:
    small = Between(size=65536)
    value, shared = small.send(np.ones(50_000))
    assert (value.sum(), shared) == (50_000, False)
    small.berths.close()


def test_tensors_travel_like_arrays(between: Between) -> None:
    torch = pytest.importorskip("torch")
    tensor, shared = between.send(torch.arange(50_000, dtype=torch.float32).reshape(2, -1))
    assert shared
    assert torch.equal(tensor, torch.arange(50_000, dtype=torch.float32).reshape(2, -1))
    tensor.add_(1)
    for other in (torch.ones(3, 4).T, torch.ones(3, requires_grad=True), torch.ones(3, dtype=torch.bfloat16)):
        value, _ = between.send([other], item=8)
        assert torch.equal(value[0], other)
        assert value[0].dtype == other.dtype


@pytest.mark.parametrize("value", [lambda: 1, open(os.devnull), (n for n in range(3))], ids=["lambda", "file", "gen"])  # noqa: SIM115
def test_what_cannot_be_sent_says_so(value: Any, between: Between) -> None:
    with pytest.raises(CannotHandOver, match="cannot be sent to another process"):
        between.before.pack(value, 1)


def test_a_slot_that_is_none_is_a_broken_stream(between: Between) -> None:
    body, _ = between.before.pack(np.ones(50_000), 1)
    with pytest.raises(wire.WireError, match="no berth"):
        between.after.unpack(1, body[:4] + b"\x63\0\0\0" + bytes(body[8:]))
    with pytest.raises(wire.WireError, match="has none"):
        Handoff().unpack(1, body)


def test_slots_are_handed_out_once_and_counted() -> None:
    berths = Berths(4096, count=2)
    first, second = berths.take(), berths.take()
    assert {first, second} == {1, 2}
    assert berths.take() == 0
    berths.hold(first)
    berths.drop(first)
    assert berths.take() == 0
    berths.drop(first)
    assert berths.take() == first
    assert berths.used == 2
    berths.close()
