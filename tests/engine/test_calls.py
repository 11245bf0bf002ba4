"""The life of a call's body: counted once, owned by the call, given back whatever becomes of the call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from panglot.engine.call import Call
from panglot.engine.memory.buffers import Arena, Leases
from panglot_worker.line import wire

MIB = 1 << 20


class Quota:
    """Takes bodies up to a size."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def take(self, size: int, total: int) -> bool:
        if self.used + size > self.most:
            return False
        self.used += size
        return True


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(MIB, MIB)
    yield made
    made.close()


def test_a_body_is_given_back_once(arena: Arena) -> None:
    quota = Quota(MIB)
    call = Call(quota)
    assert call.take_body(b"", arena.take(20_000), 20_000)
    assert (quota.used, arena.used, len(call.body()[0])) == (20_000, 1, 20_000)
    for _ in range(2):
        call.release()
        assert (quota.used, arena.used, call.size) == (0, 0, 0)


def test_a_body_that_is_too_large_stays_with_who_had_it(arena: Arena) -> None:
    quota, buffer = Quota(100), arena.take(20_000)
    call = Call(quota)
    assert not call.take_body(b"", buffer, 20_000)
    assert (call.size, call.buffer, quota.used, arena.used) == (0, None, 0, 1)


def test_a_body_grows_and_is_replaced_and_stays_counted(arena: Arena) -> None:
    quota = Quota(100)
    call = Call(quota)
    assert call.take_body(b"0123456789", None, 10)
    assert call.grow(50)
    assert not call.grow(50)
    assert (call.size, quota.used) == (60, 60)
    call.become(wire.placed(30_000), arena.take(30_000))
    assert (call.size, quota.used, arena.used, call.pieces) == (30_000, 30_000, 1, ())
    call.become(b"abc", None)
    assert (call.size, quota.used, arena.used, list(call.body())) == (3, 3, 0, [b"abc"])
    call.release()
    assert quota.used == 0


def test_a_worker_that_reads_a_body_owns_it_too(arena: Arena) -> None:
    call, leases = Call(), Leases()
    assert call.take_body(b"", arena.take(20_000), 20_000)
    assert call.buffer is not None
    assert leases.look(7, call.buffer) == call.buffer.address
    call.release()
    assert arena.used == 1
    leases.release(7)
    leases.release(7)
    assert arena.used == 0


def test_a_call_that_everybody_forgets_costs_no_shared_memory(arena: Arena) -> None:
    call = Call()
    assert call.take_body(b"", arena.take(20_000), 20_000)
    del call
    assert arena.used == 0
