"""Which calls are refused because of what their like have done."""

from __future__ import annotations

from panglot.engine.call import Call
from panglot.engine.pools.poison import MOST, Poison
from panglot_worker.line import wire


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def call(body: bytes = b"body", **head: bytes) -> Call:
    made = Call()
    made.head, made.pieces, made.size = wire.Head(**head).pack(), (body[:2], body[2:]), len(body)
    return made


def sentenced(poison: Poison, body: bytes = b"body") -> None:
    assert [poison.killed(call(body)) for _ in range(4)] == [False, False, True, False]


def test_three_deaths_and_a_while() -> None:
    clock = Clock()
    poison = Poison(3, 600, clock)
    assert poison.refusal(call()) is None
    sentenced(poison)
    fault = poison.refusal(call())
    assert fault is not None
    assert (fault.status, fault.code) == (422, "poisonous")
    clock.now += 601
    assert poison.refusal(call()) is None
    poison.expire()
    assert not poison.lengths
    sentenced(poison)
    poison.forget()
    assert poison.refusal(call()) is None


def test_what_makes_a_kind() -> None:
    poison = Poison(3, 600, Clock())
    sentenced(poison)
    for other in (call(b"BODY"), call(b"longer"), call(query=b"a"), call(route=b"a"), call(content_type=b"a/b")):
        assert poison.refusal(other) is None
    whole = call(request_id=b"7", traceparent=b"x")
    whole.pieces = (b"body",)
    assert poison.refusal(whole) is not None


def test_an_answer_acquits() -> None:
    poison = Poison(3, 600, Clock())
    for _ in range(5):
        assert not poison.killed(call())
        assert not poison.killed(call())
        poison.survived(call())


def test_a_later_pool_knows_bodies_of_suspicious_lengths_only() -> None:
    poison = Poison(2, 600, Clock())

    def handed_on() -> Call:
        passed = call()
        poison.hand_on(passed)
        passed.pool_index, passed.pieces, passed.size = 1, (b"something else",), 14
        return passed

    assert not poison.killed(handed_on())
    assert not poison.killed(handed_on())
    assert poison.killed(handed_on())
    assert poison.refusal(call()) is not None
    assert poison.refusal(handed_on()) is not None


def test_it_remembers_so_many() -> None:
    poison = Poison(1, 600, Clock())
    for number in range(2 * MOST):
        poison.killed(call(b"x" * number))
    assert len(poison.lengths) == MOST
    assert poison.refusal(call(b"x")) is None
    assert poison.refusal(call(b"x" * (2 * MOST - 1))) is not None


def test_none_is_refused_where_that_is_turned_off() -> None:
    poison = Poison(0, 600, Clock())
    assert not any(poison.killed(call()) for _ in range(9))
    assert not poison.lengths
