"""Scripts that load their model in a thread: they are ready when the thread ends, and have failed when it raises."""

from __future__ import annotations

import concurrent.futures.thread
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Set

from panglot_worker.errors import ScriptError

PAUSE = 0.02
POOL_FILE = concurrent.futures.thread.__file__


class ThreadWatch:
    """Notes the threads that are started while it is open, and the exceptions they die of."""

    def __init__(self) -> None:
        self._before: Set[threading.Thread] = set()
        self._died: List[Any] = []
        self._hook: Any = None

    def __enter__(self) -> ThreadWatch:
        self._before = set(threading.enumerate())
        self._hook = threading.excepthook
        threading.excepthook = self._note
        return self

    def __exit__(self, *exc: object) -> None:
        # A hook that the script has installed meanwhile stays.
        if threading.excepthook == self._note:
            threading.excepthook = self._hook

    def _note(self, arguments: Any) -> None:
        # A thread may end itself by SystemExit; Python itself is silent about it.
        if arguments.exc_type is not SystemExit:
            self._died.append((arguments.thread, arguments.exc_value))
        self._hook(arguments)

    def wait(self, seconds: float, progress: Callable[[str], None]) -> None:
        """Wait until no thread loads any more. Raises the exception of a thread, or ScriptError when time is up."""
        deadline = time.monotonic() + seconds
        reported: Set[str] = set()
        while True:
            self._raise_death(progress)
            busy = self._busy()
            if not busy:
                return
            name = described(busy[0])
            if name not in reported:
                reported.add(name)
                progress("waiting for %s, which the script started" % name)
            if time.monotonic() > deadline:
                raise ScriptError(
                    "%s, which the script started while loading, has not ended in time" % name,
                    fix="a longer --load-timeout, or --no-await-threads if it is meant to run for ever",
                )
            # A short wait, not a join to the end: another thread may die meanwhile, and its error is wanted at once.
            busy[0].join(PAUSE)

    def _raise_death(self, progress: Callable[[str], None]) -> None:
        for thread, error in self._died:
            progress("running %s" % described(thread))
            raise error

    def _busy(self) -> List[threading.Thread]:
        alive = [thread for thread in threading.enumerate() if thread not in self._before]
        frames = sys._current_frames()
        # A daemon thread is meant to run on beside the script: waiting for it would last for ever.
        return [thread for thread in alive if not thread.daemon and not _is_idle(thread, frames)]


def _is_idle(thread: threading.Thread, frames: Dict[int, Any]) -> bool:
    """Whether a thread belongs to an executor and waits for work."""
    frame = frames.get(thread.ident or 0)
    # Executors have no public sign of idleness. An idle thread stands in the loop that waits on their queue.
    return frame is not None and frame.f_code.co_filename == POOL_FILE and frame.f_code.co_name == "_worker"


def described(thread: Optional[threading.Thread]) -> str:
    """The thread, by the function that it runs or by its name."""
    if thread is None:
        return "a thread"
    target = getattr(getattr(thread, "_target", None), "__qualname__", "")
    return "the thread %s" % (target or thread.name)
