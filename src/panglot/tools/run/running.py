"""`panglot run`: a package's answers to many inputs, without a server."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from panglot import inputs as requests
from panglot.errors import StartError
from panglot.inputs.base import About
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.tools import stages
from panglot.tools.run.inputs import Input, OwnExample, UnreadableInput, own_example, request_for
from panglot.tools.run.offline import RESULTS, Offline, OfflineReply, offline
from panglot_worker.line.wire import STAGES


@dataclass(frozen=True)
class RunPlan:
    """How to run: each input `repeat` times after `warmup` runs of the first, `concurrency` at once."""

    repeat: int = 1
    warmup: int = 0
    concurrency: int = 1
    field: str = ""
    record: bool = False
    """Whether results have the values of all stages."""


@dataclass(frozen=True)
class RunResult:
    """The result of one input. Times are milliseconds, the median of its runs."""

    name: str
    status: int = 0
    value: Any = None
    error: str = ""
    traceback: str = ""
    times: dict[str, float] = field(default_factory=dict)
    runs: int = 0
    stable: bool = True
    """Whether all runs gave the same answer."""
    stages: dict[str, stages.Leaves] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return bool(self.error) or self.status >= 400


Report = Callable[[RunResult], None]


async def run(
    package: Package, settings: Settings, inputs: Sequence[Input], plan: RunPlan, report: Report,
    loaded: Callable[[], None],
) -> bool:  # fmt: skip
    """Run every input, or the package's example, and report each result in order. False when Ctrl-C ended it early.

    Raises LoadError when the package does not load.
    """
    # By a handler, not by KeyboardInterrupt: the workers are closed in order before this returns.
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopping.set)
    load = asyncio.ensure_future(_all(package, settings, inputs, plan, report, loaded))
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({load, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if load.done():
        load.result()
        return True
    load.cancel()
    # Waits until the cancelled run has closed its workers.
    await asyncio.gather(load, return_exceptions=True)
    return False


async def _all(
    package: Package, settings: Settings, inputs: Sequence[Input], plan: RunPlan, report: Report,
    loaded: Callable[[], None],
) -> None:  # fmt: skip
    async with offline(package, settings) as running:
        about = requests.about_package(package, running.path, running.api, plan.field)
        entries: Sequence[Input | OwnExample] = inputs or [own_example(about, package.folder)]
        loaded()
        first = next((entry for entry in entries if not isinstance(entry, UnreadableInput)), None)
        for _ in range(plan.warmup if first else 0):
            assert first is not None
            await _one(running, about, first, dataclasses.replace(plan, repeat=1))
        waiting: list[asyncio.Future[RunResult]] = []
        try:
            for entry in entries:
                waiting.append(asyncio.ensure_future(_one(running, about, entry, plan)))
                if len(waiting) >= plan.concurrency:
                    # Removed from the list only behind the `await`: if that is cancelled, `finally` cancels the task.
                    report(await waiting[0])
                    del waiting[0]
            while waiting:
                report(await waiting[0])
                del waiting[0]
        finally:
            for task in waiting:
                task.cancel()


async def _one(running: Offline, about: About, entry: Input | OwnExample, plan: RunPlan) -> RunResult:
    if isinstance(entry, UnreadableInput):
        return RunResult(entry.name, error=entry.problem)
    try:
        request = request_for(about, entry)
        accept = f"{stages.STAGES}, {RESULTS}" if plan.record else RESULTS
        replies = [await running.send(request, accept) for _ in range(plan.repeat)]
    except StartError as error:
        return RunResult(entry.name, error=error.problem + (f" (fix: {error.fix})" if error.fix else ""))
    except OSError as error:
        return RunResult(entry.name, error=error.strerror or str(error))
    return _result(entry.name, replies)


def _result(name: str, replies: list[OfflineReply]) -> RunResult:
    recorded: dict[str, stages.Leaves] = {}
    plain = []
    for reply in replies:
        if reply.content_type == stages.STAGES:
            record = stages.parse(reply.body)
            recorded = recorded or record.stages
            reply = dataclasses.replace(reply, content_type=record.content_type, body=record.body)
        plain.append(reply)
    first = next((reply for reply in plain if reply.failed or reply.error), plain[0])
    error = first.error if first.failed or first.error else ""
    return RunResult(
        name,
        first.status,
        first.value() if first.body else None,
        error if first.failed else "",
        first.traceback,
        _medians(plain),
        len(plain),
        len({(reply.status, reply.body) for reply in plain}) == 1,
        recorded,
    )


def _medians(replies: list[OfflineReply]) -> dict[str, float]:
    times = {
        stage: statistics.median(reply.times[index] for reply in replies) / 1000 for index, stage in enumerate(STAGES)
    }
    times["total"] = statistics.median(reply.total_us for reply in replies) / 1000
    return {stage: round(value, 3) for stage, value in times.items()}


def arrays(results: Sequence[RunResult]) -> tuple[dict[str, Any], list[str]]:
    """The final values of all results by key, for `--save`, and the keys of values that are no arrays.

    A key is `prob`, or `cat.png/prob` when there are several inputs.
    """
    from panglot.tools.arrays import as_saved

    values: dict[str, Any] = {}
    for result in results:
        start = f"{result.name}/" if len(results) > 1 else ""
        values |= {start + (path or "output"): as_saved(leaf) for path, leaf in result.stages.get("final", {}).items()}
    return {key: array for key, array in values.items() if array is not None}, [
        key for key, array in values.items() if array is None
    ]
