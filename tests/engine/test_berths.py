"""Shared memory: who holds which piece, and what the system gets back."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from panglot.engine.memory.buffers import SMALLEST, Berth, Berths
from panglot.engine.memory.lending import LOOSE, Lending
from panglot_worker.line import wire

MIB = 1 << 20


@pytest.fixture
def berths() -> Iterator[Berths]:
    made = Berths(MIB, MIB)
    yield made
    made.close()


def taken(berths: Berths, size: int) -> Berth:
    berth = berths.take(size)
    assert berth is not None
    return berth


def test_berths_are_handed_out_once_and_counted(berths: Berths) -> None:
    first, second = taken(berths, 500_000), taken(berths, 500_000)
    assert first.start != second.start
    assert berths.take(500_000) is None
    first.hold()
    first.drop()
    assert berths.take(500_000) is None
    first.drop()
    assert berths.take(400_000) is first
    assert berths.used == 2


@pytest.mark.parametrize("size", [1, 16384, 16385, 65536, 65537, MIB - 1, MIB])
def test_a_berth_is_large_enough_and_of_its_own(size: int, berths: Berths) -> None:
    all_of_them = []
    while (berth := berths.take(size)) is not None:
        assert len(berth.view) >= size
        all_of_them.append(berth)
    assert len(all_of_them) == MIB >> max(SMALLEST, (size - 1).bit_length())
    for number, berth in enumerate(all_of_them):
        berth.view[:] = bytes([number % 251]) * len(berth.view)
    assert all(set(bytes(berth.view)) == {number % 251} for number, berth in enumerate(all_of_them))


def test_what_is_larger_than_every_berth_gets_none(berths: Berths) -> None:
    assert berths.take(MIB + 1) is None


def test_memory_is_taken_when_written_and_given_back_when_nobody_needs_it(berths: Berths) -> None:
    held = [taken(berths, 100_000) for _ in range(4)]
    assert berths.bytes == 0
    for berth in held:
        berth.view[:100_000] = bytes(100_000)
    full = berths.bytes
    assert 400_000 <= full <= 450_000
    for berth in held:
        berth.drop()
    berths.trim()
    assert berths.bytes == full, "they may be needed in a moment"
    taken(berths, 100_000).drop()
    berths.trim()
    assert full // 5 <= berths.bytes <= full // 3, "all but the one in use"
    berths.trim()
    berths.trim()
    assert berths.bytes == 0


def test_what_is_being_sent_is_held_until_nothing_refers_to_it(berths: Berths) -> None:
    berth = taken(berths, 20_000)
    berth.view[:5] = b"hello"
    sent = berth.given_away(5)
    part = sent[1:3]
    assert berths.used == 1
    del sent
    gc.collect()
    assert (berths.used, bytes(part)) == (1, b"el")
    del part
    assert berths.used == 0


def test_what_is_being_sent_comes_back_although_nobody_else_knows_it(berths: Berths) -> None:
    """Garbage may be collected while a client reads slowly: the berth is none."""
    sent = taken(berths, 20_000).given_away(5)
    gc.collect()
    del sent
    assert berths.used == 0


def reply(size: int, flags: int = 0) -> wire.Reply:
    return wire.Reply(1, 200, flags, wire.NO_TIMES, b"", wire.placed(size))


def test_room_for_answers_is_lent_once_there_are_large_ones() -> None:
    lending = Lending(0, 16384)
    lending.learn([reply(100), reply(16383), reply(1 << 22, wire.MORE)])
    assert lending.size == 0
    lending.learn([reply(100), reply(50_000)])
    assert lending.size == 65536
    lending.learn([reply(20_000)])
    assert lending.size == 65536
    for size in (65536, 32768, 16384, 0):
        assert lending.size == size
        for _ in range(LOOSE + 1):
            lending._note(10)
    fixed = Lending(8 << 20, 16384)
    fixed.learn([reply(20 << 20)])
    assert fixed.size == 8 << 20
    none = Lending(0, 0)
    none.learn([reply(20 << 20)])
    assert none.size == 0
