"""The CPUs of this machine that this process may use."""

from __future__ import annotations

import os

from panglot.machine.cgroups import cpu_quotas


def usable_cpus() -> float:
    """How many CPUs this process may use: fewer than there are where affinity or a container limits them."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(allowed), *cpu_quotas()])
