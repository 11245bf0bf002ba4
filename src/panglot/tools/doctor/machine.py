"""The checks of the machine by `panglot doctor`: limits, devices, the address, abilities of the kernel."""

from __future__ import annotations

import math
import mmap
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

from panglot.errors import StartError
from panglot.machine import devices, mps
from panglot.machine.cgroups import memory_limits
from panglot.machine.cpus import usable_cpus
from panglot.settings import Settings
from panglot.settings.all_settings import MIB
from panglot.settings.names import flag
from panglot.settings.units import show_size
from panglot.terminal.text import counted
from panglot.tools.doctor.finding import PROBLEM, WARNING, Check, CheckResult
from panglot.tools.doctor.fronts import fronts
from panglot.tools.listening import listener

MACHINE, ADDRESS = "machine", "address"
PROC = Path("/proc")
SMALL_MEMORY = 1024 * MIB
SMALL_DISK = 256 * MIB
SPARE_FILES = 64
"""Open files that a front needs besides its connections."""


# Limits


def cpus(_: Settings | None = None) -> CheckResult:
    """How many CPUs this process may use."""
    there = os.cpu_count() or 1
    usable = usable_cpus()
    value = f"{usable:g}" if usable == there else f"{usable:g} of {there} (limited by the container or affinity)"
    if usable < 1:
        return CheckResult(value, WARNING, "give the container at least one CPU")
    return CheckResult(value)


def memory(_: Settings) -> CheckResult:
    """How much memory this process may use, and how much is free."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    usable = min([there, *memory_limits()])
    value = show_size(_rounded(usable))
    if usable < there:
        value += f" of {show_size(_rounded(there))} (limited by the container)"
    free = _free_memory()
    if free and usable == there:
        value += f", {show_size(_rounded(free))} free"
    if min(usable, free or usable) < SMALL_MEMORY:
        return CheckResult(value, WARNING, "a worker that needs more is killed: free or allow more memory")
    return CheckResult(value)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _free_memory() -> int:
    for line in _read(PROC / "meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return 0


def _rounded(count: int) -> int:
    """The count, rounded down to a tenth of a GiB or to a MiB."""
    step = 1024 * MIB / 10 if count >= 1024 * MIB else MIB
    return math.floor(count / step) * int(step)


def open_files(settings: Settings) -> CheckResult:
    """Whether the limit of open files is high enough for the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CheckResult(f"no limit; at most {settings.max_connections} connections at once")
    value = f"{soft} allowed; at most {settings.max_connections} connections at once"
    if settings.max_connections + SPARE_FILES > soft:
        needed = settings.max_connections + SPARE_FILES
        allowed = hard == resource.RLIM_INFINITY or hard >= needed
        fix = f"ulimit -n {needed}, or a lower {flag('max_connections')}" if allowed else "a lower --max-connections"
        return CheckResult(value, WARNING, fix)
    return CheckResult(value)


# Devices and features


def gpus(settings: Settings) -> CheckResult:
    """The GPUs that nvidia-smi lists; none is a problem only where the settings name one."""
    wanted = settings.device.startswith("cuda")
    state, fix = (PROBLEM, "serve with --device cpu, or install the NVIDIA driver") if wanted else (WARNING, "")
    program = shutil.which("nvidia-smi")
    if program is None:
        return CheckResult("none found", *(state, fix) if wanted else ())
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult(f"nvidia-smi does not answer: {error}", state, fix)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reason = (lines or done.stderr.strip().splitlines() or ["no GPU listed"])[0]
        return CheckResult(f"nvidia-smi: {reason}", state, fix)
    return CheckResult("; ".join(_gpu(line) for line in lines))


def _gpu(line: str) -> str:
    """A line of nvidia-smi, such as `NVIDIA L4, 23034 MiB, 550.54.15`, in words."""
    name, size, driver = ([field.strip() for field in line.split(",")] + ["", ""])[:3]
    return f"{name} ({size}, driver {driver})"


def sharing_of_gpus(settings: Settings, cards: int | None = None) -> CheckResult | None:
    """Whether `--mps` would help: without it, workers that share a card take turns on it."""
    if not (devices.count() if cards is None else cards):
        return None
    named = len({word.strip() for word in settings.device.split(",") if word.strip().startswith("cuda")})
    workers = max(settings.workers.most, 1)
    if mps.elsewhere():
        return CheckResult("runs already; workers that share a GPU use it side by side")
    if not mps.is_there():
        return CheckResult(f"not there ({mps.CONTROL}); workers that share a GPU take turns on it")
    if workers > (named or 1) and not settings.mps:
        value = f"not started: {workers} workers share {counted(named or 1, 'GPU')}, and take turns on it"
        return CheckResult(value, WARNING, "serve with --mps")
    use = "would be started" if settings.mps else "there"
    return CheckResult(f"{use}; it helps where several workers share a GPU (--workers, --mps)")


def shared_memory(_: Settings) -> CheckResult:
    """Whether anonymous memory files work: some sandboxes refuse them."""
    try:
        fd = os.memfd_create("panglot-doctor")
        try:
            os.ftruncate(fd, mmap.PAGESIZE)
            with mmap.mmap(fd, mmap.PAGESIZE) as shared:
                shared[:2] = b"ok"
        finally:
            os.close(fd)
    except (OSError, AttributeError) as error:
        return CheckResult(f"memfd does not work: {error}", WARNING, "use Linux 3.17 or newer")
    return CheckResult("memfd works")


def temporary_folder(_: Settings) -> CheckResult:
    """Whether the temporary folder can be written, and has free space."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"ok")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return CheckResult(f"cannot be written: {error}", PROBLEM, "set TMPDIR to a folder that can")
    value = f"{folder} can be written, {show_size(_rounded(free))} free"
    if free < SMALL_DISK:
        return CheckResult(value, WARNING, f"free some space, or set TMPDIR; {folder} is nearly full")
    return CheckResult(value)


# The address


def access(settings: Settings) -> CheckResult:
    """Which clients may reach the server."""
    from panglot.web.access import tokens

    try:
        token = bool(tokens.establish(settings).token)
    except StartError as error:
        return CheckResult(error.problem, PROBLEM, error.fix)
    return CheckResult(_access_words(settings, token, tokens.is_loopback(settings.host)))


def port(settings: Settings) -> CheckResult:
    """Whether the port is free."""
    from panglot.web.http1 import server

    try:
        server.bind(settings).close()
    except StartError as error:
        holder = _holder(settings.port)
        return CheckResult(error.problem + (f", by {holder}" if holder else ""), PROBLEM, error.fix)
    return CheckResult(
        "any free port will be taken" if settings.port == 0 else f"{settings.host}:{settings.port} is free"
    )


def _access_words(settings: Settings, token: bool, loopback: bool) -> str:
    if token:
        return "a token is needed"
    return (
        "no token; only this machine can ask" if loopback else f"no token; anyone who reaches {settings.host} can ask"
    )


def _holder(port: int) -> str:
    """The process that listens on a port, in words, as far as this user may know."""
    pid = listener(port)
    return f"process {pid} ({_read(PROC / str(pid) / 'comm')})" if pid is not None else ""


CHECKS = (
    Check(MACHINE, "CPUs", cpus),
    Check(MACHINE, "fronts", fronts),
    Check(MACHINE, "memory", memory),
    Check(MACHINE, "open files", open_files),
    Check(MACHINE, "GPUs", gpus),
    Check(MACHINE, "MPS", sharing_of_gpus),
    Check(MACHINE, "memory files", shared_memory),
    Check(MACHINE, "temporary folder", temporary_folder),
    Check(ADDRESS, "access", access),
    Check(ADDRESS, "port", port),
)
