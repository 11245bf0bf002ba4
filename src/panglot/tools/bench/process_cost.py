"""The cost of a server under load: CPU and memory of its processes, and its GPUs."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
EVERY = 0.25
GPU_EVERY = 1.0
GPU_QUERY = ("--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits")


@dataclass
class Cost:
    """CPU as a share of one core over the whole watch, and the most memory in bytes; None where it cannot be seen."""

    cpu: float | None = None
    memory: int | None = None
    gpu_use: float | None = None
    gpu_memory: float | None = None
    processes: int = 0

    def as_dict(self) -> dict[str, float | int | None]:
        return vars(self)


@dataclass
class CostWatch:
    """Watches a process and all below it, in a thread, from `begin` to `end`. Without a pid only GPUs are watched."""

    pid: int | None
    gpu: str = field(default_factory=lambda: shutil.which("nvidia-smi") or "")

    def begin(self) -> None:
        """Start the watch."""
        self.cost = Cost()
        self._began = time.monotonic()
        self._ticks: dict[int, int] = {}
        """CPU ticks by process, as last seen: processes that have ended count too."""
        self._first: dict[int, int] = {}
        """The same at the beginning of the watch. A process that is not in it began later, with 0 ticks."""
        self._gpu: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._look(first=True)
        self._threads = [threading.Thread(target=self._watch, daemon=True)]
        if self.gpu:
            self._threads.append(threading.Thread(target=self._watch_gpu, daemon=True))
        for thread in self._threads:
            thread.start()

    def end(self) -> Cost:
        """End the watch, and return the cost since its beginning."""
        self._look()
        seconds = time.monotonic() - self._began
        self._stop.set()
        for thread in self._threads:
            thread.join(10)
        if self._ticks:
            used = sum(ticks - self._first.get(pid, 0) for pid, ticks in self._ticks.items())
            self.cost.cpu = used / os.sysconf("SC_CLK_TCK") / max(seconds, 1e-9)
        if self._gpu:
            self.cost.gpu_use = sum(use for use, _ in self._gpu) / len(self._gpu)
            self.cost.gpu_memory = max(memory for _, memory in self._gpu)
        return self.cost

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            self._look()

    def _look(self, first: bool = False) -> None:
        if self.pid is None:
            return
        family = tree(self.pid)
        resident = 0
        for pid, (_, ticks, pages) in family.items():
            if first:
                self._first[pid] = ticks
            self._ticks[pid] = ticks
            resident += pages * os.sysconf("SC_PAGE_SIZE")
        if family:
            self.cost.memory = max(self.cost.memory or 0, resident)
            self.cost.processes = max(self.cost.processes, len(family))

    def _watch_gpu(self) -> None:
        while True:
            with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
                done = subprocess.run([self.gpu, *GPU_QUERY], capture_output=True, text=True, timeout=10, check=False)
                rows = [[float(word) for word in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
                if rows:
                    self._gpu.append((max(use for use, _ in rows), sum(memory for _, memory in rows)))
            if self._stop.wait(GPU_EVERY):
                return


def tree(root: int, proc: Path = PROC) -> dict[int, tuple[int, int, int]]:
    """A process and all below it: parent, CPU ticks and resident pages by pid."""
    # Processes come and go while they are read: one that is gone is skipped.
    everyone: dict[int, tuple[int, int, int]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name in brackets may contain anything, brackets included.
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                everyone[int(entry.name)] = (int(words[1]), int(words[11]) + int(words[12]), int(words[21]))
    family = {root} & everyone.keys()
    grown = True
    while grown:
        more = {pid for pid, (parent, _, _) in everyone.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return {pid: everyone[pid] for pid in family}
