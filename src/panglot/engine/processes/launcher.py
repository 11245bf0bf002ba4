"""Starting workers: their environment, their folder, where their output goes."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from panglot.engine.context import EngineContext
from panglot.engine.memory import buffers
from panglot.engine.memory.buffers import Arena
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.memory.retained import RetainedMemory
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.processes import process
from panglot.engine.processes.family import Family
from panglot.engine.processes.output import ScriptOutput
from panglot.engine.processes.scratch import Scratch
from panglot.engine.workers.worker import Worker
from panglot_worker.life.output_pipes import OutputPipes

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool

script_log = logging.getLogger("panglot.script")


class MachineLost(OSError):
    """The machine that a worker was being started on has gone, which is no fault of the package."""


class Launcher:
    """Starts the workers of one pool."""

    def __init__(self, context: EngineContext, plan: PoolPlan, memory: PoolMemory) -> None:
        self.package = context.package
        self.plan = plan
        self.memory = memory
        self.settings = context.settings
        self.metrics = context.metrics
        self.clock = context.clock
        self.scratch = Scratch(self.package.run_links, self.package.stores_inputs)
        self.retained = RetainedMemory(self.package.retained_bytes)
        self._ended: list[Family] = []
        """Families of dead workers whose control groups cannot be removed yet."""
        self.inline: socket.socket | None = None
        """The socket to a script that runs in this process (`--inline`), when there is one."""

    def record(self, pool: Pool, index: int, generation: int, clock: Callable[[], float]) -> Worker:
        """The front's record of a worker that is to be launched."""
        return Worker(pool, index, generation, clock)

    @property
    def outage(self) -> str:
        """Why no worker can be launched now, through no fault of the package; empty: one can."""
        return ""

    def placements(self) -> dict[str, int]:
        """How many placements on other machines there are, by state."""
        return {}

    async def launch(self, worker: Worker, workers: int) -> None:
        """Start a worker, one of `workers` on this machine. Raises OSError when the process cannot be started."""
        settings = self.settings
        worker.results = self.memory.writes or self._answers()
        worker.gives, worker.takes = self.memory.gives, self.memory.readable()
        hello = {"package": self._about(worker)}
        if self.inline is not None:
            await worker.adopt(self.inline, hello)
            return
        wanted = self.plan.device or settings.device
        devices = [device.strip() for device in wanted.split(",") if device.strip()]
        environment = process.environment(
            {**os.environ, **self.package.environment},
            threads=max(1, (os.cpu_count() or 1) // workers),
            device=devices[worker.index % len(devices)] if devices else "",
            pixels=settings.max_pixels,
        )
        shared = (self.memory.reads, worker.results, worker.gives, *worker.takes)
        files = tuple(arena.fd for arena in shared if arena is not None)
        if self.retained.size:
            files = (*files, self.retained.file(worker.index))
        output = self._output(worker)
        # Last: `start` owns these pipes from here on, and closes them where it fails.
        output.native = OutputPipes(self.package.captures_native_output)
        await worker.start(settings.python, self.package.folder, environment, hello, output, files)

    def _about(self, worker: Worker) -> dict[str, Any]:
        """What the worker has to know about its package."""
        return {
            **self.package.for_worker(),
            "settings": {
                **self.settings.for_worker(),
                "may_be_pipeline": self.inline is None and not self.settings.pools,
            },
            "worker": worker.index,
            "run_folder": self.scratch.folder(self._folder(worker)),
            "input_folder": self.scratch.input_folder(self._folder(worker)),
            "pool": self.plan.for_worker(),
            "memory": self._memory(worker),
            "retained": self.retained.file(worker.index) if self.inline is None else -1,
        }

    def _answers(self) -> Arena | None:
        """A file for the large answers of one worker of the last pool, if bodies have one."""
        settings = self.settings
        wanted = self.plan.last and settings.share_from
        return buffers.create(settings.request_memory, settings.max_output) if wanted else None

    def _memory(self, worker: Worker) -> dict[str, Any]:
        """The shared memory of a worker: the file of its inputs, and the file in which it may be lent buffers."""
        reads, writes = self.memory.reads, worker.results
        return {
            "reads": reads.for_worker() if reads is not None else None,
            "writes": writes.for_worker() if writes is not None else None,
            "private": not self.plan.first,
            "gives": worker.gives.for_worker() if worker.gives is not None else None,
            "takes": [(arena.mark, *arena.for_worker()) for arena in worker.takes],
        }

    def _folder(self, worker: Worker) -> str:
        return f"worker-{worker.generation}"

    def _output(self, worker: Worker) -> ScriptOutput:
        about = {"package": self.package.name, "worker": worker.index}
        if self.plan.name:
            about["pool"] = self.plan.name
        return ScriptOutput(
            lambda line: script_log.info("%s", line, extra=about),
            self._dropped,
            self.clock,
            longest=self.settings.log_line,
            rate=self.settings.log_rate,
        )

    def _dropped(self, count: int) -> None:
        self.metrics.log_dropped += count

    def clean_up(self, worker: Worker) -> None:
        """Remove the folders, the control group and the answers of a dead worker."""
        # In a pipeline all workers of the pool write to one file, which outlives this worker.
        if worker.results is not None and worker.results is not self.memory.writes:
            worker.results.close()
            worker.results = None
        self.scratch.remove(self._folder(worker))
        # All of them again: a group can be removed only when its last process has ended.
        self._ended = [family for family in (*self._ended, worker.family) if not family.remove()]

    def rest(self) -> None:
        """Give back what is reserved for workers: none runs, and none is started soon."""

    def close(self) -> None:
        """Remove all folders, and kill the processes that dead workers started."""
        self.scratch.close()
        self.retained.close()
        for family in self._ended:
            family.kill()
            family.remove_soon()
