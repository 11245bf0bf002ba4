"""The two sides of a comparison: a package run here, a server, a command, or a file. Each answers an input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from panglot import inputs
from panglot.errors import StartError
from panglot.inputs.base import Given
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.tools import arrays, stages
from panglot.tools.check.compare import flat
from panglot.tools.run.offline import RESULTS, Offline, OfflineReply, offline
from panglot.tools.running_server import RunningServer

ACCEPT = f"{stages.STAGES}, {RESULTS}"
INPUT, OUTPUT = "{input}", "{output}"


@dataclass(frozen=True)
class Answer:
    """The answer of one side to an input, by key, and the stages before it where they can be seen."""

    final: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, stages.Leaves] = field(default_factory=dict)
    error: str = ""
    saved: bool = False
    """Whether `final` was read from a file of arrays. There numbers have types, and single values are arrays of one."""


class Side(Protocol):
    name: str
    dialect: str

    async def answer(self, given: Given) -> Answer: ...


def _answer(reply: OfflineReply) -> Answer:
    if reply.content_type == stages.STAGES:
        recorded = stages.parse(reply.body)
        plain = OfflineReply(recorded.status, recorded.content_type, recorded.body)
        error = f"status {recorded.status}" if plain.failed else ""
        return Answer(dict(flat(plain.value())), recorded.stages, error)
    if reply.failed:
        return Answer(error=reply.error or f"status {reply.status}: {reply.value()}")
    return Answer(dict(flat(reply.value())))


class Local:
    """A package, run here."""

    def __init__(self, name: str, running: Offline, field: str) -> None:
        self.name = name
        self.dialect = running.package.dialect
        self.running = running
        self.about = inputs.about_package(running.package, running.path, running.api, field)

    async def answer(self, given: Given) -> Answer:
        return _answer(await self.running.send(inputs.make_request(self.about, given), ACCEPT))


class Remote:
    """A server. With `--dev` it shows its stages."""

    def __init__(self, client: RunningServer) -> None:
        self.name = client.url
        self.client = client
        self.about = client.describe()
        self.dialect = self.about.dialect

    async def answer(self, given: Given) -> Answer:
        return _answer(await asyncio.to_thread(self.client.send, inputs.make_request(self.about, given), ACCEPT))


class Command:
    """A command line with `{input}` in it, such as a training framework's own predict script, run by `python`.

    Its answer is the .npy it writes to `{output}` or to the folder it runs in, or else the last line of JSON it prints.
    """

    dialect = ""

    def __init__(self, line: str, python: str) -> None:
        self.name = line
        words = shlex.split(line)
        self.words = [python or sys.executable, *words] if words[0].endswith(".py") else words

    async def answer(self, given: Given) -> Answer:
        return await asyncio.to_thread(self._run, given)

    def _run(self, given: Given) -> Answer:
        with tempfile.TemporaryDirectory(prefix="panglot-check-") as folder:
            output = Path(folder) / "output.npy"
            source = str(given.file) if given.file is not None else str(Path(folder) / "input.json")
            if given.file is None:
                Path(source).write_text(json.dumps(given.value))
            words = [word.replace(INPUT, source).replace(OUTPUT, str(output)) for word in self.words]
            # A script without `{output}` writes where it runs: a .npy file that is new or changed is its answer.
            before = _saved()
            try:
                done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
            except OSError as error:
                raise StartError(f"{words[0]} cannot be run: {error.strerror}") from None
            if done.returncode:
                last = done.stderr.strip().rpartition("\n")[2]
                return Answer(error=f"exit code {done.returncode}: {last}")
            written = [file for file, when in _saved().items() if before.get(file) != when]
            for file in (output, *written):
                if file.exists():
                    return Answer(dict(flat(arrays.read(file))), saved=True)
        # From the end: what a script prints on its way may be JSON too.
        for line in reversed(done.stdout.splitlines()):
            with contextlib.suppress(ValueError):
                return Answer(dict(flat(json.loads(line))))
        return Answer(error=f"it printed no JSON and wrote no .npy, not to {OUTPUT} either")


def _saved() -> dict[Path, int]:
    """The .npy files of the current folder, and when they were written."""
    return {file: file.stat().st_mtime_ns for file in Path.cwd().glob("*.npy")}


Where = RunningServer | Side | tuple[Package, Settings]
"""A server, a side that needs no opening (a command line, a file of answers), or a package with its settings."""


@asynccontextmanager
async def opened(name: str, where: Where, field: str) -> AsyncIterator[Side]:
    """A side, ready to answer. Raises StartError when the package does not load or the server is not there."""
    if isinstance(where, RunningServer):
        yield Remote(where)
    elif isinstance(where, tuple):
        async with offline(*where) as running:
            yield Local(name, running, field)
    else:
        yield where
