"""Amounts of memory: of the machine, and of its GPUs."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20


class Memory(NamedTuple):
    """Bytes of both kinds."""

    machine: int = 0
    gpu: int = 0

    def plus(self, other: Memory) -> Memory:
        return Memory(self.machine + other.machine, self.gpu + other.gpu)

    def __str__(self) -> str:
        parts = (f"{self.machine // MIB} MiB", f"{self.gpu // MIB} MiB of GPU memory" if self.gpu else "")
        return " and ".join(filter(None, parts))
