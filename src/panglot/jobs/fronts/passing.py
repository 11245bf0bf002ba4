"""Commands about jobs, and their results, as bytes between the fronts of a server: JSON, with all bytes behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from panglot.engine.call import CallProgress, Fault
from panglot.jobs.interface import JobState, ModelCount
from panglot.jobs.job import Job, JobOutcome, JobTrouble, NewJob, StoredAnswer, Webhook
from panglot_worker.line import calls, wire

KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (CallProgress, Fault, Job, JobOutcome, JobState, ModelCount, NewJob, StoredAnswer, Webhook)
}
"""The named tuples that may pass."""
BYTES, TUPLE, LIST, JSON, TROUBLE = "bytes", "tuple", "list", "json", "trouble"


def packed(value: Any) -> tuple[Any, bytes]:
    """A value as JSON can hold it, and the bytes in it, one behind the other."""
    pieces: list[bytes] = []
    return _packed(value, pieces), b"".join(pieces)


def _packed(value: Any, pieces: list[bytes]) -> Any:
    if isinstance(value, bytes):
        pieces.append(value)
        return {BYTES: len(value)}
    if isinstance(value, JobTrouble):
        return {TROUBLE: [value.code, str(value), value.retry_after]}
    if isinstance(value, CallProgress):
        # Its text is any value of the script, which could look like a packed value.
        return {CallProgress.__name__: [value.fraction, {JSON: value.text}]}
    if isinstance(value, Fault):
        # Its details are any value of the script, too.
        return {Fault.__name__: [*value[:-1], {JSON: value.details}]}
    if isinstance(value, tuple | list):
        name = type(value).__name__
        return {name: [_packed(each, pieces) for each in value]}
    return value


def unpacked(value: Any, body: memoryview) -> Any:
    """The value that `packed` was given. Raises WireError."""
    at = [0]
    try:
        return _unpacked(value, body, at)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise wire.WireError(f"a front sent no value of jobs: {str(value)[:80]}") from error


def _unpacked(value: Any, body: memoryview, at: list[int]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == BYTES:
        start, at[0] = at[0], at[0] + inner
        return bytes(body[start : at[0]])
    if kind == JSON:
        return inner
    if kind == TROUBLE:
        return JobTrouble(*inner)
    items = [_unpacked(each, body, at) for each in inner]
    if kind == LIST:
        return items
    return tuple(items) if kind == TUPLE else KINDS[kind](*items)


def frame(kind: int, number: int, command: str, value: Sequence[Any] | Any) -> list[wire.Buffer]:
    """A frame with a command and its arguments; or, with an empty command, the result of the command of this number."""
    shown, body = packed(value)
    return calls.frame(kind, 0, {"number": number, "command": command, "value": shown}, (body,))


def read(payload: memoryview) -> tuple[int, str, Any]:
    """Number, command and value of a frame. Raises WireError."""
    text, body = calls.read(payload)
    about = wire.json_object(text)
    return about["number"], about["command"], unpacked(about["value"], body)
