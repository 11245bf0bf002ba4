"""The worker's life: say hello, load the script, serve until the front says stop."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import os
import platform
import resource
import signal
import socket
import sys
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from panglot_worker import dialects
from panglot_worker.compat import pictures
from panglot_worker.dialects.base import AsksForPipeline, Dialect, Package, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.items.interrupting import Interrupter
from panglot_worker.items.tensors.adapter import TensorAdapter
from panglot_worker.life import loader, output_pipes
from panglot_worker.line import wire
from panglot_worker.line.description import Description, problems
from panglot_worker.line.port import FrontGone, Port, PortSocket
from panglot_worker.line.sharing import SharedMemory
from panglot_worker.scripts import loading, native_output, whole_lines

F_SETSIG = 10
PR_SET_PDEATHSIG = 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
ROW_KEY = 32
"""Bytes of the key of results between pools; what follows in the pipe is a certificate."""


def start(socket_fd: str, life_fd: str, keys_fd: str = "") -> None:
    """Entry point of a worker process, from its command line. On a node of a cluster, a pipe holds keys for it."""
    keys = b""
    if keys_fd:
        with os.fdopen(int(keys_fd), "rb") as pipe:
            keys = pipe.read()
    main(int(socket_fd), int(life_fd), keys[:ROW_KEY], keys[ROW_KEY:].decode())


def main(socket_fd: int, life_fd: int, row_key: bytes = b"", certificate: str = "") -> None:
    """Live a worker's life. `socket_fd` leads to the front; `life_fd` is a pipe that ends when the front dies."""
    # First, so that everything that prints later goes through these streams.
    whole_lines.install()
    # `pop`, not `get`: processes that the script starts must not inherit the variable.
    native_output.install(output_pipes.numbers(os.environ.pop(output_pipes.VARIABLE, "")))
    die_with_front(life_fd)
    # A process that the script starts must not hold the socket open: the front learns of our death by its end.
    os.set_inheritable(socket_fd, False)
    # Ctrl-C in a terminal reaches the whole foreground group. Only the front decides when a worker stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    be_expendable()
    reuse_memory()
    try:
        port = Port(line(socket_fd, certificate))
        port.row_key = row_key
        code = work(port)
    # An ordinary end of a worker: the front has gone, in whatever way.
    except (FrontGone, ConnectionError):
        code = 0
    whole_lines.finish()
    native_output.settle()
    # Not `sys.exit`: threads and exit hooks of a script must not keep a worker that is done.
    os._exit(code)


def line(socket_fd: int, certificate: str) -> PortSocket:
    """The socket to the front, encrypted where there is a certificate. Raises OSError."""
    sock = socket.socket(fileno=socket_fd)
    if not certificate:
        return sock
    from panglot_worker.line import encryption

    return encryption.EncryptedSocket(sock, encryption.context(certificate, is_node=True))


def die_with_front(life_fd: int) -> None:
    """Have the kernel kill this worker's whole process group when the front dies, in whatever way.

    The front holds the other end of the pipe `life_fd` and never writes to it, so its only event is the front's end.
    The parent-death signal serves kernels without signal-driven input on pipes; it kills this process alone.
    """
    os.set_inheritable(life_fd, False)
    with contextlib.suppress(OSError):
        # A negative owner means the process group, so that processes of the script die too.
        fcntl.fcntl(life_fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(life_fd, F_SETSIG, signal.SIGKILL)
        # O_ASYNC is last: the signal and its receiver must be set before the first event can come.
        fcntl.fcntl(life_fd, fcntl.F_SETFL, fcntl.fcntl(life_fd, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The front may have died before the lines above; no event comes for an end that has already happened.
    with contextlib.suppress(BlockingIOError):
        if os.read(life_fd, 1) == b"":
            os._exit(0)


def enter_group(group: str) -> None:
    """Move this process into its own control group, so that every process the script starts ends with this worker."""
    if group:
        with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs"), "w") as members:
            members.write("0")


def be_expendable() -> None:
    """Write no core dumps, and let the kernel end this worker before the front when memory runs out."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def reuse_memory() -> None:
    """Keep memory that a script frees for its next call, instead of fetching it anew from the system, page by page.

    glibc itself arrives at these limits in a process that has freed large arrays. Until then, arrays of some hundred
    kilobytes can cost more in page faults than in anything else.
    """
    # Where its operator has tuned the allocator, these settings stay.
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, 32 << 20)
        mallopt(M_TRIM_THRESHOLD, 64 << 20)


def work(port: Port, own_process: bool = True) -> int:
    """Load the script, serve until the front says stop, and return the exit code.

    Without a process of its own (`--inline`) the worker changes no signals.
    """
    frame = port.next()
    if frame.kind != wire.HELLO:
        raise wire.WireError("expected HELLO, got %s" % wire.NAMES.get(frame.kind, frame.kind))
    hello = wire.json_object(frame.payload)
    port.generation = int(hello["generation"])
    # Before the script is imported: a process that it starts inherits the control group it is started in.
    enter_group(str(hello.get("group", "")))
    package = Package(**hello["package"])
    # `pop`, not `get`: processes that the script starts must not inherit the variable.
    package = package._replace(retained=int(os.environ.pop(loader.RETAINED, package.retained)))
    port.max_body = int(package.settings["limits"]["output_bytes"])
    port.shared = SharedMemory(**package.memory)
    port.max_handed = min(port.max_handed, int(package.settings["handed_bytes"]))
    port.tell(wire.HELLO, {"pid": os.getpid(), "python": platform.python_version(), "executable": sys.executable})
    pictures.limit(int(package.settings.get("max_pixels", 40_000_000)))
    loading.enter(package)
    # From here on only this port may read: the guarded one has taken over the state of the other.
    port = guarded(port, package, own_process)
    loaded = load(package, port, own_process)
    if loaded is None:
        return 3
    dialect, stages, serve = loaded
    reason = serve(dialect, stages, port, bool(package.settings.get("rerun", True)))
    if reason:
        port.tell(wire.EVENT, {"type": "retire", "reason": reason, "planned": dialect.is_replaced})
    with contextlib.suppress(Exception):
        dialect.close()
    return 0


class LoadedScript(NamedTuple):
    """A script that is ready: its dialect, its stages, and the function that serves them."""

    dialect: Dialect
    stages: Optional[Stages]
    serve: Callable[..., str]


def load(package: Package, port: Port, own_process: bool) -> Optional[LoadedScript]:
    """Load the script and say READY. None where the load has failed, and the front knows why."""
    doing = "loading"
    started = time.monotonic()

    def progress(step: str) -> None:
        nonlocal doing
        doing = step
        port.tell(wire.LOADING, {"step": step, "seconds": round(time.monotonic() - started, 3)})

    try:
        # Before anything of the script runs: the kernel refuses a new user namespace to a process with threads.
        leave_network(package, own_process)
        native_output.start()
        dialect = dialects.find(package)(package)
        dialect.port = port
        Request.reporter = dialect.report_progress
        dialect.stages = stages = dialect.load(progress)
        dialects.check_stages(dialect)
        description = described(dialect)
        # After the import, because importing is when scripts and frameworks install their own handlers.
        if own_process:
            reset_signals()
        if package.does("inference") and stages is not None:
            stages = warm_up(dialect, stages, port, progress)
        if own_process and package.settings.get("on_leave") == "interrupt" and dialect.server == Dialect.server:
            dialect.interrupter = interrupter = Interrupter(dialect, port)
            # Before READY: from then on the signal may come, and without a handler it would end this process.
            interrupter.install()
        dialect.tensor_adapter = tensor_adapter = TensorAdapter(dialect, stages)
        description["tensors"] = tensor_adapter.describe()
        loaded = arranged(dialect, tensor_adapter.around(stages) if stages is not None else None)
    except AsksForPipeline as wish:
        port.tell(wire.EVENT, {"type": "pipeline", "pools": wish.pools})
        return None
    except BaseException as error:  # noqa: BLE001  loading a script raises anything, SystemExit too
        # The lines of the script first: they usually say more about the failure than the exception does.
        whole_lines.finish()
        native_output.settle()
        port.tell(wire.FAILED, loading.as_dict(loading.explain(error, package, doing)))
        return None
    # The objects of the loaded script stay for good. Frozen, no collection during a call searches them again.
    gc.collect()
    gc.freeze()
    port.tell(wire.READY, ready(loaded, description, time.monotonic() - started))
    return loaded


def described(dialect: Dialect) -> Description:
    """The dialect's description of its script's API. Raises ScriptError where it is none that the front reads."""
    description = dialect.describe()
    wrong = list(problems(description))
    if wrong:
        raise ScriptError(
            "the dialect '%s' does not describe its API as it must: %s" % (dialect.package.dialect, "; ".join(wrong)),
            fix="`describe` returns a `panglot_worker.line.description.Description`",
        )
    # A copy, which `load` completes: the dialect may keep what it has returned.
    return description.copy()


def arranged(dialect: Dialect, stages: Optional[Stages]) -> LoadedScript:
    """The part of the script that this worker runs: all of it, or the stages of its pool; recorded with `dev`."""
    module, _, name = dialect.server.partition(":")
    serve: Callable[..., str] = getattr(importlib.import_module(module), name)
    package = dialect.package
    if package.pool:
        from panglot_worker.items.pipelines.pipeline import PipelinePool

        pool = PipelinePool(dialect, package.pool)
        stages = pool.of(stages) if stages is not None else None
    if package.settings.get("dev") and stages is not None:
        from panglot_worker.items import recording

        stages = recording.watched(stages, package)
    return LoadedScript(dialect, stages, serve)


def guarded(port: Port, package: Package, own_process: bool) -> Port:
    """The port, with a guard around the script's connections where the setting `worker_net` wants one."""
    if package.settings.get("worker_net") != "guard":
        return port
    if not own_process:
        message = "the script's connections are not guarded in this process; they are without --inline"
        port.tell(wire.EVENT, {"type": "warning", "message": message})
        return port
    from panglot_worker.life.netguard import GuardedPort

    return GuardedPort(port, package.settings.get("url_allow", ()))


def leave_network(package: Package, own_process: bool) -> None:
    """Leave every network where `worker_net` is `none`. Raises ScriptError where the machine does not allow it."""
    if package.settings.get("worker_net") != "none":
        return
    if not own_process:
        raise ScriptError("--worker-net none needs a process of its own", fix="leave out --inline")
    from panglot_worker.life import netguard

    netguard.leave_network()


def warm_up(dialect: Dialect, stages: Stages, port: Port, progress: Callable[[str], None]) -> Stages:
    """Run the script's example. A failure is a warning, or, by setting, a failed load."""
    rule = str(dialect.package.settings.get("warm_up", "warn"))
    if rule == "off":
        return stages
    progress("running its example")
    try:
        return dialect.warm_up(stages)
    except BaseException as error:
        if rule == "fail" or not isinstance(error, Exception):
            raise
        traceback = loading.script_traceback(error)
        port.tell(wire.EVENT, {"type": "warning", "message": "the script's own example failed", "traceback": traceback})
        return stages


def ready(loaded: LoadedScript, description: Description, seconds: float) -> Dict[str, Any]:
    """The message to the front once the script can take items."""
    dialect = loaded.dialect
    infers = dialect.package.does("inference")
    by_route = loaded.stages.by_route if loaded.stages is not None else {}
    batched = [stages.infer_batch is not None for stages in (loaded.stages, *by_route.values()) if stages is not None]
    return {
        "slots": dialect.slots,
        "batched": any(batched),
        "interrupts": dialect.interrupter is not None,
        "lanes": {route.decode("latin-1"): most_together(stages) for route, stages in by_route.items()},
        "workers": dialect.workers if infers else None,
        "max_batch": dialect.max_batch if infers else None,
        "seconds": round(seconds, 3),
        "api": description,
    }


def most_together(stages: Stages) -> Optional[int]:
    """How many items of a route the script takes in one call; None: as many as the worker's other routes."""
    return 1 if stages.infer_batch is None else stages.max_batch


def reset_signals() -> None:
    """Undo what a script installed while loading: it must not change how its worker is stopped."""
    # A handler of the script would run instead of ending the process, and the front would have to kill it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Named by its file: scripts replace `sys.stderr` by objects without a descriptor, which faulthandler refuses.
    faulthandler.enable(file=sys.__stderr__ if sys.__stderr__ else 2)
