"""Who is to blame for a dead worker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from panglot.engine.call import DONE, RUNNING, Call
from panglot.engine.pools.after_death import judge


def call(number: int, *, killers: int = 0, parts: int = 0, state: int = RUNNING) -> Call:
    made = Call()
    made.id, made.killers, made.chunks, made.state = number, killers, parts, state
    return made


def ids(calls: list[Call]) -> list[int]:
    return [one.id for one in calls]


def test_a_batch_runs_again_item_by_item() -> None:
    verdict = judge([call(1), call(2)], 2, rerun=True)
    assert ids(verdict.again) == [1, 2]
    assert all(one.alone for one in verdict.again)
    assert verdict.suspected == 2


def test_whoever_kills_alone_is_guilty() -> None:
    verdict = judge([call(1, killers=1)], 1, rerun=True)
    assert (ids(verdict.again), ids(verdict.guilty)) == ([], [1])


def test_what_had_not_started_goes_back_untouched() -> None:
    verdict = judge([call(1), call(2), call(3)], 1, rerun=True)
    assert ids(verdict.again) == [1, 2, 3]
    assert [one.alone for one in verdict.again] == [True, False, False]
    assert [one.killers for one in verdict.again] == [1, 0, 0]


def test_the_running_call_may_have_been_answered_already() -> None:
    """Its client timed out; those behind it are innocent all the same."""
    verdict = judge([call(1, state=DONE), call(2)], 1, rerun=True)
    assert ids(verdict.again) == [2]
    assert not verdict.again[0].alone


def test_without_rerun_suspects_are_answered_and_the_rest_go_back() -> None:
    verdict = judge([call(1), call(2)], 1, rerun=False)
    assert (ids(verdict.guilty), ids(verdict.again)) == ([1], [2])


def test_a_stream_that_has_begun_cannot_begin_again() -> None:
    verdict = judge([call(1, parts=3), call(2)], 2, rerun=True)
    assert (ids(verdict.guilty), ids(verdict.again)) == ([1], [2])


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.sampled_from([RUNNING, DONE])), max_size=8),
    st.integers(0, 8),
    st.booleans(),
)
def test_every_running_call_has_exactly_one_fate(made: list[tuple[int, int, int]], suspects: int, rerun: bool) -> None:
    calls = [call(n, killers=killers, parts=parts, state=state) for n, (killers, parts, state) in enumerate(made)]
    verdict = judge(calls, suspects, rerun)
    assert sorted(ids(verdict.again) + ids(verdict.guilty)) == [one.id for one in calls if one.state == RUNNING]
    assert ids(verdict.again) == sorted(ids(verdict.again))
