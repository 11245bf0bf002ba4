"""A batch that failed as one: its items are run again one by one, once, to find out whose fault it was."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Tuple

from panglot_worker.dialects.base import Request
from panglot_worker.errors import described
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import script_traceback


class Outcome(NamedTuple):
    """The outcome of one item: its output or its exception, and how long that took."""

    output: Any
    error: Optional[BaseException]
    seconds: float


def one_by_one(
    run: Callable[[Any], Any],
    items: Iterable[Tuple[Request, Any]],
    error: BaseException,
    port: Port,
    explain: Callable[[BaseException], str] = script_traceback,
) -> Iterator[Outcome]:
    """Run each item alone, whenever the caller takes the next outcome. At the end an event reports the failures.

    `error` is the exception of the batch; `explain` words it for the log, where no item fails alone.
    """
    count = failures = 0
    all_of_them = list(current.running)
    for request, value in items:
        current.running[:] = (request,)
        outcome = attempt(run, value)
        count += 1
        failures += outcome.error is not None
        # A generator, so that the caller can send this outcome before the next item has a chance to end the process.
        yield outcome
    current.running[:] = all_of_them
    counts = {"items": count, "failed": failures, "error": "" if failures else explain(error)}
    port.tell(wire.EVENT, {"type": "batch_split", "message": described(error), **counts})


def attempt(run: Callable[[Any], Any], value: Any) -> Outcome:
    """Run one item. An exception of any kind is an outcome too."""
    started = time.perf_counter()
    try:
        output = run(value)
    except BaseException as error:
        return Outcome(None, error, time.perf_counter() - started)
    return Outcome(output, None, time.perf_counter() - started)
