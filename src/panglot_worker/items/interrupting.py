"""Ending a call that nobody waits for any more, while the script runs it on the main thread.

The front cancels the items of the call, then sends this process the signal `wire.INTERRUPT`, again and again until the
call has ended. The signal names no call: it may come late, when the next call runs. So the handler reads from the port
which items are cancelled, and interrupts only a call of which all are. A batch is never interrupted for one of its
items, and a late signal does no harm.
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
"""Code of this package that scripts call and that must run to its end: half a frame would break the stream."""

MOMENT = 0.0005
"""Seconds until the handler looks again."""


class Interrupter:
    """Raises in the call in progress once all its items are cancelled. It raises once: cleaning up is not disturbed."""

    def __init__(self, dialect: Dialect, port: Port) -> None:
        self._dialect = dialect
        self._port = port
        self._armed = False
        """Whether code of the script runs, so that an exception may be raised in it."""
        self._raised_for: Set[int] = set()
        """The items of the call that was interrupted."""
        self._children = children()
        """The child processes that this process had when the script was loaded."""

    def install(self) -> None:
        """Hear the signal from now on. On the main thread."""
        signal.signal(wire.INTERRUPT, self._on_signal)

    def around(self, stages: Stages) -> Stages:
        """The stages, with an exception raised in code of the script when its call must end."""
        names = ("infer", "infer_batch", "preprocess", "postprocess", *(stages.script_code - BETWEEN))
        own: Any = {name: self._stage(getattr(stages, name)) for name in names}
        own["infer"] = self._in_parts(own["infer"])
        routes = {route: self.around(each) for route, each in stages.by_route.items()}
        return stages._replace(**own, by_route=routes)

    def has_ended(self, item_id: int) -> bool:
        """Whether the call of this item was interrupted."""
        return item_id in self._raised_for

    def forget(self, item_id: int) -> None:
        """Note that the front hears of the end of this item now."""
        self._raised_for.discard(item_id)
        self._port.cancelled.discard(item_id)

    def left_processes(self) -> bool:
        """Whether there are child processes that are newer than the loaded script: the call may have left them."""
        return not children() <= self._children

    # Raising

    def _stage(self, stage: Optional[Callable[..., Any]]) -> Any:
        if stage is None:
            return None
        return functools.partial(self._called, stage)

    def _in_parts(self, infer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The stage `infer`. If its output is a generator, each of its parts is a call of the script too."""

        def infer_in_parts(value: Any) -> Any:
            output = infer(value)
            return self._parts(output) if inspect.isgenerator(output) else output

        return infer_in_parts

    def _parts(self, parts: Any) -> Iterator[Any]:
        """A generator's parts. Between two parts nothing is raised: a cancelled stream is closed by its reader."""
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
            # Items of an earlier call, which went on after it was interrupted and has been answered.
            self._raised_for.intersection_update(request.id for request in current.running)
        try:
            self._armed = True
            # Cancelled before it began, when no signal could raise: in the socket, or in a batch run item by item.
            if self._port.cancelled and self._is_unwanted():
                self._raise()
            return run(*arguments)
        finally:
            self._armed = False

    def _on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        if not self._armed:
            # Ignored, and not remembered: the front sends the signal again until the call has ended.
            return
        if is_undisturbed(frame):
            # Again in a moment, not with the front's next signal: a script that prints much is here most of the time.
            time.sleep(MOMENT)
            os.kill(os.getpid(), number)
            return
        self._port.look()
        if self._is_unwanted():
            self._raise()

    def _is_unwanted(self) -> bool:
        """Whether nobody waits for the call in progress, and it has not been interrupted yet."""
        items = {request.id for request in current.running}
        return bool(items) and items <= self._port.cancelled and not items & self._raised_for

    def _raise(self) -> None:
        # First: if `finally` of `_called` has begun, the exception ends it before it clears the flag.
        self._armed = False
        self._raised_for.update(request.id for request in current.running)
        raise self._dialect.interruption()


def is_undisturbed(frame: Optional[FrameType]) -> bool:
    """Whether the main thread is in code that must run to its end, called by the script."""
    # Up to `_called` of this module: the frames above it are not the script's.
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
