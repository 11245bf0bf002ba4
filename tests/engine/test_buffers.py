"""Shared memory: who holds which piece, and what the system gets back."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from panglot.engine.memory.buffers import SMALLEST, Arena, SharedBuffer
from panglot.engine.workers.lent_results import LOOSE, Lending
from panglot_worker.line import wire

MIB = 1 << 20


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(MIB, MIB)
    yield made
    made.close()


def taken(arena: Arena, size: int) -> SharedBuffer:
    buffer = arena.take(size)
    assert buffer is not None
    return buffer


def test_buffers_are_handed_out_once_and_counted(arena: Arena) -> None:
    first, second = taken(arena, 500_000), taken(arena, 500_000)
    address = first.address
    assert address != second.address
    assert arena.take(500_000) is None
    shared = first.share()
    first.release()
    assert arena.take(500_000) is None
    shared.release()
    third = taken(arena, 400_000)
    assert third.address == address
    assert arena.used == 2


def test_a_buffer_that_is_forgotten_comes_back(arena: Arena) -> None:
    def forgets() -> None:
        buffer = taken(arena, 20_000)
        buffer.share().view[:1] = b"x"
        raise KeyError(buffer.address)

    with pytest.raises(KeyError):
        forgets()
    assert arena.used == 0


def test_a_buffer_is_given_back_once_and_shows_nothing_afterwards(arena: Arena) -> None:
    first = taken(arena, 500_000)
    first.release()
    second, third = taken(arena, 500_000), taken(arena, 500_000)
    first.release()
    assert arena.take(500_000) is None, "the second release must not take away what others own now"
    with pytest.raises((ValueError, TypeError)):
        first.view[:1] = b"x"
    with pytest.raises(ValueError, match="was released"):
        first.share()
    with pytest.raises(ValueError, match="was released"):
        first.exported(1)
    assert len(second.view) == len(third.view)


@pytest.mark.parametrize("size", [1, 16384, 16385, 65536, 65537, MIB - 1, MIB])
def test_a_buffer_is_large_enough_and_of_its_own(size: int, arena: Arena) -> None:
    all_of_them = []
    while (buffer := arena.take(size)) is not None:
        assert len(buffer.view) >= size
        all_of_them.append(buffer)
    assert len(all_of_them) == MIB >> max(SMALLEST, (size - 1).bit_length())
    for number, buffer in enumerate(all_of_them):
        buffer.view[:] = bytes([number % 251]) * len(buffer.view)
    assert all(set(bytes(buffer.view)) == {number % 251} for number, buffer in enumerate(all_of_them))


def test_what_is_larger_than_every_buffer_gets_none(arena: Arena) -> None:
    assert arena.take(MIB + 1) is None


def test_memory_is_taken_when_written_and_given_back_when_nobody_needs_it(arena: Arena) -> None:
    held = [taken(arena, 100_000) for _ in range(4)]
    assert arena.bytes == 0
    for buffer in held:
        buffer.view[:100_000] = bytes(100_000)
    full = arena.bytes
    assert 400_000 <= full <= 450_000
    for buffer in held:
        buffer.release()
    arena.trim()
    assert arena.bytes == full, "they may be needed in a moment"
    taken(arena, 100_000).release()
    arena.trim()
    assert full // 5 <= arena.bytes <= full // 3, "all but the one in use"
    arena.trim()
    arena.trim()
    assert arena.bytes == 0


def test_what_is_being_sent_is_held_until_nothing_refers_to_it(arena: Arena) -> None:
    buffer = taken(arena, 20_000)
    buffer.view[:5] = b"hello"
    sent = buffer.exported(5)
    part = sent[1:3]
    assert arena.used == 1
    del sent
    gc.collect()
    assert (arena.used, bytes(part)) == (1, b"el")
    del part
    assert arena.used == 0


def test_what_is_being_sent_comes_back_although_nobody_else_knows_it(arena: Arena) -> None:
    """Garbage may be collected while a client reads slowly: the buffer is none."""
    sent = taken(arena, 20_000).exported(5)
    gc.collect()
    del sent
    assert arena.used == 0


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
