"""Why a worker died, in words for the log."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence

from panglot.engine.call import Call
from panglot.engine.workers.worker import HUNG, LINGER, RETIRED, STOPPED, Worker
from panglot.errors import LoadError
from panglot.packages.distributions import pip_line
from panglot.packages.package import Package
from panglot.terminal.text import counted

STACK_LINE = re.compile(r'File "(.+)", line (\d+) in ')
"""As Python writes the stacks of a process that is aborted."""
LAST_LINES = 12


def is_expected(worker: Worker) -> bool:
    """Whether a worker has ended on purpose, so that its death is no trouble."""
    return worker.reason in (RETIRED, STOPPED)


async def write(worker: Worker, lost: Sequence[Call], package: Package) -> tuple[str, str]:
    """One line with the cause and the requests the worker had, and the end of its output.

    For a worker that has not loaded: the line with the fix, and the script's traceback.
    """
    if worker.failure is not None:
        error = load_error(worker, package)
        return f"{worker} did not load: {error.sentence()}", error.traceback.rstrip()
    words = await _last_words(worker)
    requests = ", ".join(call.request_id.decode("latin-1") for call in lost[:8])
    had = f"; it held {counted(len(lost), 'request')}: {requests}" if lost else ""
    return f"{worker} {worker.cause()}{had}", f"its last words:\n{words}" if words else ""


async def _last_words(worker: Worker) -> str:
    """The end of the worker's output, once that has been read."""
    if worker.output is None:
        return ""
    # Output has a pipe of its own, whose end may be read after the death is known, or never if a child holds it.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            await worker.output.ended.wait()
    return "\n".join(list(worker.output.tail)[-LAST_LINES:])


def _hung(worker: Worker, package: Package) -> LoadError:
    """The error of a worker that did not load in time: where it was, by the stacks it wrote. The log has these."""
    matches = [STACK_LINE.search(line) for line in (worker.output.tail if worker.output else ())]
    frames = [(match[1], int(match[2])) for match in matches if match is not None]
    inside = (frame for frame in frames if frame[0].startswith(f"{package.folder}/"))
    file, line = next(inside, (str(package.script), 0))
    return LoadError(f"the worker {worker.cause()}", file=file, line=line, fix="--load-timeout gives it longer")


def load_error(worker: Worker, package: Package) -> LoadError:
    """Why a worker never became ready, with a fix where one is known."""
    error = _load_error(worker, package)
    error.problem, error.file = package.in_archive(error.problem), package.in_archive(error.file)
    error.traceback = package.in_archive(error.traceback)
    return error


def _load_error(worker: Worker, package: Package) -> LoadError:
    failure = worker.failure
    if failure is None and worker.reason == HUNG:
        return _hung(worker, package)
    if failure is None:
        words = "\n".join(worker.output.tail) if worker.output else ""
        return LoadError(f"the worker {worker.cause()} while {worker.step}", file=str(package.script), traceback=words)
    fix = failure.get("fix", "")
    if failure.get("missing"):
        line = pip_line(str(worker.info.get("executable", "python")), failure["missing"])
        fix = f"{line}, or serve with --python of an environment that has it"
        if package.installs or (package.folder / "requirements.txt").is_file():
            fix = f"--install, which installs what the package lists; or {fix}"
    return LoadError(
        failure["problem"],
        file=failure.get("file") or str(package.script),
        line=int(failure.get("line") or 0),
        fix=fix,
        traceback=failure.get("traceback", ""),
    )
