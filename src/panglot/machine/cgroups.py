"""The limits and counters of the control groups that this process is in: its own group and all above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")


def memory_limits(cgroup: Path = CGROUP, proc: Path = PROC) -> list[int]:
    """Bytes allowed by each control group this process is in, where one limits them."""
    words = _at_every_level(cgroup, proc, "memory.max", "memory", ("memory.limit_in_bytes",))
    return [int(word) for word in words if word.isdigit()]


def cpu_quotas(cgroup: Path = CGROUP, proc: Path = PROC) -> list[float]:
    """CPUs allowed by each control group this process is in, where one limits them."""
    quotas = []
    for words in _at_every_level(cgroup, proc, "cpu.max", "cpu", ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        quota, _, period = words.partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            quotas.append(int(quota) / int(period))
    return quotas


def out_of_memory_kills(cgroup: Path = CGROUP, proc: Path = PROC) -> int:
    """How often the kernel has killed in our control group for want of memory; 0 where it does not say."""
    for text in _at_every_level(cgroup, proc, "memory.events", "memory", ("memory.oom_control",)):
        for line in text.splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                return int(count)
    return 0


def own_group(cgroup: Path = CGROUP, proc: Path = PROC) -> Path | None:
    """The folder of the group this process is in, in version 2; None where that is not in use."""
    for line in _read(proc / "self" / "cgroup").splitlines():
        if line.startswith("0::"):
            for root in (cgroup, cgroup / "unified"):
                own = root / line[3:].strip("/")
                if (own / "cgroup.procs").exists() and (root / "cgroup.controllers").exists():
                    return own
    return None


def _at_every_level(cgroup: Path, proc: Path, file: str, controller: str, old_files: tuple[str, ...]) -> Iterator[str]:
    """The text of each level, from this process up: that of `file` in version 2, of `old_files` joined in version 1."""
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root, files = (cgroup / controllers, old_files) if controllers else (cgroup, (file,))
        level = root / own.strip("/")
        while level.is_relative_to(root):
            words = " ".join(_read(level / name) for name in files)
            if words.strip():
                yield words
            level = level.parent


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
