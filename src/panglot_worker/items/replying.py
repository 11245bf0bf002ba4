"""The replies that the front gets about items."""

from __future__ import annotations

from typing import List

from panglot_worker.dialects.base import Answer, Problem
from panglot_worker.errors import BAD_RESULT
from panglot_worker.line import wire

MOST = 0xFFFFFFFF
"""The most microseconds that are reported."""
LONGEST = MOST / 1e6


def finished(item_id: int, answer: Answer, times: wire.Times, rows: int = 1) -> wire.Reply:
    """The reply with a dialect's answer, or with a problem where HTTP cannot carry its headers."""
    text = answer.content_type
    if answer.headers:
        text = "\0".join((text, *answer.headers))
    try:
        head = text.encode("latin-1")
    except UnicodeEncodeError as error:
        detail = "EncodeError: a content type or header is not Latin-1: %r" % text[max(0, error.start - 40) : error.end]
        return wire.problem(item_id, 500, "bad_result", BAD_RESULT, detail, times)
    return wire.Reply(item_id, answer.status, answer.flags, times, head, answer.body, rows)


def cancelled(item_id: int) -> wire.Reply:
    """The end of an item nobody waits for: every item sent gets exactly one final reply."""
    return wire.Reply(item_id, 499, wire.UNRUN, wire.NO_TIMES, b"", b"")


def failed(item_id: int, problem: Problem, traceback: str, times: wire.Times) -> wire.Reply:
    status, code, message, _, details = problem
    return wire.problem(item_id, status, code, message, traceback, times, details)


def microseconds(seconds: float) -> int:
    return int(seconds * 1e6) if seconds < LONGEST else MOST


def durations(marks: List[float]) -> wire.Times:
    """Stage times from the moments the stages ended; stages not reached count nothing."""
    if len(marks) == 6 and marks[5] - marks[0] < LONGEST:
        began, decoded, prepared, inferred, done, encoded = marks
        return (
            int((decoded - began) * 1e6), int((prepared - decoded) * 1e6), int((inferred - prepared) * 1e6),
            int((done - inferred) * 1e6), int((encoded - done) * 1e6),
        )  # fmt: skip
    times = [microseconds(end - start) for start, end in zip(marks, marks[1:])]
    times += [0] * (5 - len(times))
    return tuple(times)  # type: ignore[return-value]
