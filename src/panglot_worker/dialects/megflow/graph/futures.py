"""Waiting inside a node: sleeping, running things side by side, and values that come later."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, List, Optional, Sequence, Tuple

from panglot_worker.dialects.megflow.graph.envelope import current


def sleep(ms: int) -> None:
    """Suspend this node for some milliseconds; others go on."""
    time.sleep(ms / 1000)


def yield_now() -> None:
    """Let others run."""
    time.sleep(0)


def block_on(task: Callable[[], Any]) -> None:
    """Run a callable as if it were a node's."""
    task()


def join(tasks: Sequence[Callable[[], Any]]) -> List[Any]:
    """Run callables side by side; their results in order. Raises what the first of them raised."""
    results: List[Any] = [None] * len(tasks)
    errors: List[Optional[BaseException]] = [None] * len(tasks)
    node = current.node

    def run(index: int) -> None:
        # The name of the node is kept per thread; losses in these threads are still the node's.
        current.node = node
        try:
            results[index] = tasks[index]()
        except BaseException as error:
            errors[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(1, len(tasks))]
    for thread in threads:
        thread.start()
    if tasks:
        run(0)
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results


class Future:
    """A value that a Waker delivers."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._value: Any = None
        self._cancelled = False

    def wait(self) -> Any:
        """The value, once: a second wait, or one after cancel(), gives None. So does a Waker that is gone."""
        self._ready.wait()
        value, self._value = self._value, None
        return value

    def cancel(self) -> None:
        self._cancelled = True
        self._value = None
        self._ready.set()

    def _deliver(self, value: Any) -> bool:
        if self._cancelled or self._ready.is_set():
            return False
        self._value = value
        self._ready.set()
        return True


class Waker:
    """Delivers a value to its Future, once."""

    def __init__(self, future: Future, callback: Optional[Callable[[Any], Any]] = None) -> None:
        self._future = future
        self._callback = callback

    def wake(self, result: Any) -> None:
        if self._future._deliver(result) and self._callback is not None:
            self._callback(result)

    def __del__(self) -> None:
        self._future._deliver(None)


def create_future(callback: Optional[Callable[[Any], Any]] = None) -> Tuple[Future, Waker]:
    future = Future()
    return future, Waker(future, callback)
