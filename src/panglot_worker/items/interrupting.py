"""Ending a call that nobody waits for any more, while the script runs it on the main thread.

The front cancels the items of the call, then sends this process the signal `wire.INTERRUPT`, again and again until the
call has ended. The signal names no call: it may come late, when the next call runs. What counts is that all items of
the call in progress are cancelled, which the handler reads from the port. So a batch is never interrupted for one of
its items, and a late signal harms nobody.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import time
from types import FrameType
from typing import Any, Callable, Iterator, List, Optional, Set

from panglot_worker import line
from panglot_worker.dialects.base import BETWEEN, Dialect, Stages
from panglot_worker.items import capturing
from panglot_worker.line import wire
from panglot_worker.line.port import Port
from panglot_worker.scripts import current, native_output, whole_lines

UNDISTURBED = (
    os.path.dirname(line.__file__) + os.sep,
    capturing.__file__,
    native_output.__file__,
    whole_lines.__file__,
)
"""Code of this package that scripts call, and that must run to its end: half a frame would break the line."""

MOMENT = 0.0005


class Interrupter:
    """Raises in the call in progress once all its items are cancelled. It raises once: cleaning up is not disturbed."""

    def __init__(self, dialect: Dialect, port: Port) -> None:
        self._dialect = dialect
        self._port = port
        self._armed = False
        """Whether the script runs, so that an exception may be raised where it is."""
        self._raised_for: Set[int] = set()
        """The items of the call that was interrupted."""
        self._children = children()
        """The processes that the script has started while it was loaded."""

    def install(self) -> None:
        """Hear the signal from now on. On the main thread."""
        signal.signal(wire.INTERRUPT, self._on_signal)

    def around(self, stages: Stages) -> Stages:
        """The stages, with an exception raised in code of the script where its call is to end."""
        names = ("infer", "infer_batch", "preprocess", "postprocess", *(stages.script_code - BETWEEN))
        own: Any = {name: self._stage(getattr(stages, name)) for name in names}
        own["infer"] = self._in_parts(own["infer"])
        routes = {route: self.around(each) for route, each in stages.by_route.items()}
        return stages._replace(**own, by_route=routes)

    def has_ended(self, item_id: int) -> bool:
        """Whether the call of this item was interrupted."""
        return item_id in self._raised_for

    def forget(self, item_id: int) -> None:
        """Note that the front is told of the end of this item."""
        self._raised_for.discard(item_id)
        self._port.cancelled.discard(item_id)

    def left_processes(self) -> bool:
        """Whether there are processes that were not there when the script was loaded: the call may have left them."""
        return not children() <= self._children

    # Raising

    def _stage(self, stage: Optional[Callable[..., Any]]) -> Any:
        if stage is None:
            return None
        return functools.partial(self._called, stage)

    def _in_parts(self, infer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The stage `infer`, whose output may be a generator: what that computes comes later, part by part."""

        def infer_in_parts(value: Any) -> Any:
            output = infer(value)
            return self._parts(output) if inspect.isgenerator(output) else output

        return infer_in_parts

    def _parts(self, parts: Any) -> Iterator[Any]:
        """A generator's parts. Between two of them the call is cancelled as always: the generator is closed."""
        end = object()
        try:
            while True:
                part = self._called(next, parts, end)
                if part is end:
                    return
                yield part
        finally:
            parts.close()

    def _called(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Call code of the script. The handler may raise until this has returned."""
        if self._raised_for:
            # Of a call that went on after it was interrupted, and has been answered.
            self._raised_for.intersection_update(request.id for request in current.running)
        try:
            self._armed = True
            # The call may have been cancelled since it was sent, or may be one of a batch that runs item by item.
            if self._port.cancelled and self._is_unwanted():
                self._raise()
            return run(*arguments)
        finally:
            self._armed = False

    def _on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        if not self._armed:
            # Ignored: the front sends the signal again while it waits for the end of the call.
            return
        if is_undisturbed(frame):
            # Again in a moment: a script that prints all the time is there most of the time.
            time.sleep(MOMENT)
            os.kill(os.getpid(), number)
            return
        self._port.look()
        if self._is_unwanted():
            self._raise()

    def _is_unwanted(self) -> bool:
        """Whether nobody waits for the call in progress, and that has not been said yet."""
        items = {request.id for request in current.running}
        return bool(items) and items <= self._port.cancelled and not items & self._raised_for

    def _raise(self) -> None:
        # First of all: where `finally` of `_called` is running already, nothing else ends the time for raising.
        self._armed = False
        self._raised_for.update(request.id for request in current.running)
        raise self._dialect.interruption()


def is_undisturbed(frame: Optional[FrameType]) -> bool:
    """Whether the main thread is in code that must run to its end, called by the script."""
    while frame is not None and frame.f_code.co_filename != __file__:
        if frame.f_code.co_filename.startswith(UNDISTURBED):
            return True
        frame = frame.f_back
    return False


def children() -> Set[int]:
    """The processes that this one has started and that have not ended."""
    own = str(os.getpid())
    numbers: List[str] = [name for name in os.listdir("/proc") if name.isdigit()]
    return {int(number) for number in numbers if is_child(number, own)}


def is_child(number: str, parent: str) -> bool:
    """Whether a process lives and has this parent."""
    try:
        with open("/proc/%s/stat" % number) as file:
            # The name of the program, in brackets, may hold anything.
            state, of = file.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        # It has just ended.
        return False
    return of == parent and state != "Z"
