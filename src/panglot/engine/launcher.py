"""Starting workers: their environment, their folder, where their output goes."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from panglot.engine import process
from panglot.engine.berths import PoolMemory
from panglot.engine.context import EngineContext
from panglot.engine.family import Family
from panglot.engine.kept_memory import KeptMemory
from panglot.engine.output import ScriptOutput
from panglot.engine.row import WHOLE, PoolPlan
from panglot.engine.scratch import Scratch
from panglot.engine.worker import Worker

script_log = logging.getLogger("panglot.script")


class Launcher:
    """Starts the workers of one pool."""

    def __init__(self, context: EngineContext, plan: PoolPlan = WHOLE, memory: PoolMemory | None = None) -> None:
        self.package = context.package
        self.plan = plan
        self.memory = memory or PoolMemory(None, None)
        self.settings = context.settings
        self.metrics = context.metrics
        self.clock = context.clock
        self.scratch = Scratch(self.package.run_links)
        self.kept = KeptMemory(self.package.kept_bytes)
        self._ended: list[Family] = []
        """Families of dead workers whose control groups cannot be removed yet."""
        self.inline: socket.socket | None = None
        """The socket to a script that runs in this process (`--inline`), when there is one."""

    async def launch(self, worker: Worker, workers: int) -> None:
        """Start a worker, one of `workers` on this machine. Raises OSError when the process cannot be started."""
        settings = self.settings
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
        files = tuple(berths.fd for berths in (self.memory.reads, self.memory.writes) if berths is not None)
        if self.kept.size:
            files = (*files, self.kept.file(worker.index))
        await worker.start(settings.python, self.package.folder, environment, hello, self._output(worker), files)

    def _about(self, worker: Worker) -> dict[str, Any]:
        """What the worker is told about its package."""
        return {
            **self.package.for_worker(),
            "settings": {**self.settings.for_worker(), "rows": self.inline is None and not self.settings.pools},
            "worker": worker.index,
            "run_folder": self.scratch.folder(self._folder(worker)),
            "pool": self._pool(),
            "kept": self.kept.file(worker.index) if self.inline is None else -1,
        }

    def _pool(self) -> dict[str, Any]:
        """What the worker is told about its pool; nothing when that is the whole package."""
        pool, memory = self.plan.for_worker(), self.memory
        if pool:
            pool["reads"] = memory.reads.for_worker() if memory.reads is not None else None
            pool["writes"] = memory.writes.for_worker() if memory.writes is not None else None
        return pool

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
        """Remove the folder and the control group of a dead worker."""
        self.scratch.remove(self._folder(worker))
        self._ended = [family for family in (*self._ended, worker.family) if not family.remove()]

    def close(self) -> None:
        """Remove all folders, and kill what dead workers left behind."""
        self.scratch.close()
        self.kept.close()
        for family in self._ended:
            family.end()
            family.remove_soon()
