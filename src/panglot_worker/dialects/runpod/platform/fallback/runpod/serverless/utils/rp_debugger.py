"""Timers for the steps of a job."""

from __future__ import annotations

import platform
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Optional

OS_INFO = "%s %s" % (platform.system(), platform.release())
PROCESSOR = platform.processor() or "Unable to get processor info."
PYTHON_VERSION = platform.python_version()


class Checkpoints:
    """The times of one job by name; all objects are the same one."""

    __instance: "Optional[Checkpoints]" = None
    checkpoints: List[Dict[str, Any]]
    name_lookup: Dict[str, int]

    def __new__(cls) -> "Checkpoints":
        if Checkpoints.__instance is None:
            Checkpoints.__instance = object.__new__(cls)
            Checkpoints.__instance.clear()
        return Checkpoints.__instance

    def add(self, name: str) -> None:
        """Have a timer. Raises KeyError for a name that is there."""
        if name in self.name_lookup:
            raise KeyError('Checkpoint name "%s" already exists.' % name)
        self.name_lookup[name] = len(self.checkpoints)
        self.checkpoints.append({"name": name})

    def start(self, name: str) -> None:
        """Start a timer. Raises KeyError."""
        self._of(name).update(start=time.perf_counter(), start_utc=_now())

    def stop(self, name: str) -> None:
        """Stop a timer. Raises KeyError for one that was not started."""
        checkpoint = self._of(name)
        if "start" not in checkpoint:
            raise KeyError("Checkpoint has not been started.")
        checkpoint.update(end=time.perf_counter(), stop_utc=_now())

    def _of(self, name: str) -> Dict[str, Any]:
        if name not in self.name_lookup:
            raise KeyError("Checkpoint name '%s' does not exist." % name)
        return self.checkpoints[self.name_lookup[name]]

    def get_checkpoints(self) -> List[Dict[str, Any]]:
        """The timers that have run to their end, with their milliseconds."""
        results = []
        for checkpoint in self.checkpoints:
            if "start" in checkpoint and "end" in checkpoint:
                checkpoint["duration_ms"] = (checkpoint.pop("end") - checkpoint.pop("start")) * 1000
                results.append(checkpoint)
        return results

    def clear(self) -> None:
        """Forget all timers."""
        self.checkpoints, self.name_lookup = [], {}


class LineTimer:
    """Times the lines of a `with`."""

    def __init__(self, name: str) -> None:
        self.checkpoints = Checkpoints()
        self.name = name
        self.checkpoints.add(name)

    def __enter__(self) -> None:
        self.checkpoints.start(self.name)

    def __exit__(self, *raised: Any) -> None:
        self.checkpoints.stop(self.name)


class FunctionTimer:
    """Times the calls of a function, as its decorator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.checkpoints = Checkpoints()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        name = self.function.__name__
        self.checkpoints.add(name)
        self.checkpoints.start(name)
        try:
            return self.function(*arguments, **named)
        finally:
            if name in self.checkpoints.name_lookup:
                self.checkpoints.stop(name)


def get_debugger_output() -> Dict[str, Any]:
    """The timers of this job, and what the machine is; the timers are forgotten."""
    import runpod

    timestamps = Checkpoints().get_checkpoints()
    Checkpoints().clear()
    system = {"os": OS_INFO, "processor": PROCESSOR, "python_version": PYTHON_VERSION, "runpod": runpod.__version__}
    return {"system_info": system, "timestamps": timestamps}


def clear_debugger_output() -> None:
    """Forget the timers of this job."""
    Checkpoints().clear()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat() + "Z"
