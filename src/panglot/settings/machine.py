"""Defaults that depend on the machine and the terminal, looked up when settings are made."""

from __future__ import annotations

import os
import resource
import sys

from panglot.machine.cgroups import memory_limits


def connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(1024, int(soft * 0.6)) if soft > 0 else 1024


def request_memory() -> int:
    """A quarter of the memory this process may use, at most 4 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(min([memory, *memory_limits()]) // 4, 4 << 30)


def on_terminal() -> float:
    """1 where a person looks at the log, 0 where it is a file or goes to a container's log."""
    return 1.0 if sys.stderr is not None and sys.stderr.isatty() else 0.0
