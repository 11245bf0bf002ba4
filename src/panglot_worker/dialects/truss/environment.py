"""The deployment's environment: a file of the platform, which it writes anew when the environment changes."""

from __future__ import annotations

import functools
import inspect
import json
import os
import time
from typing import Any, Callable, Tuple

from panglot_worker.dialects.base import Dialect
from panglot_worker.errors import described

FILE = "/etc/b10_dynamic_config/environment"
SECONDS = 1.0
"""Between two looks at the file."""


def current() -> Any:
    """The environment, where the platform tells of one; None elsewhere."""
    try:
        with open(FILE, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    return json.loads(text) if text else None


class Environment:
    """Tells a model with `setup_environment` of a new environment before its next call. Tells each one once."""

    def __init__(self, dialect: Dialect, model: Any, known: Any) -> None:
        self._dialect = dialect
        self._function: Callable[[Any], Any] = model.setup_environment
        self._known = known
        self._written = _written()
        self._next_look = 0.0

    def before(self, stage: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A stage that tells the model first. It is awaited where the stage is."""
        if inspect.iscoroutinefunction(stage):

            @functools.wraps(stage)
            async def awaited(value: Any) -> Any:
                try:
                    result = self._tell()
                    if inspect.isawaitable(result):
                        await result
                except Exception as error:
                    self._failed(error)
                return await stage(value)

            return awaited

        @functools.wraps(stage)
        def called(value: Any) -> Any:
            try:
                self._dialect.settled(self._tell())
            except Exception as error:
                self._failed(error)
            return stage(value)

        return called

    def _tell(self) -> Any:
        """Call `setup_environment` where there is a new environment. Raises what it raises, and for a broken file."""
        now = time.monotonic()
        if now < self._next_look:
            return None
        self._next_look = now + SECONDS
        written = _written()
        if written == self._written:
            return None
        # Noted first: an environment that cannot be read, or that the model refuses, is not tried at every call.
        self._written = written
        environment = current()
        if environment is None or environment == self._known:
            return None
        self._known = environment
        return self._function(environment)

    def _failed(self, error: Exception) -> None:
        """The model goes on with the environment that it has, as on the platform."""
        self._dialect.warn("setup_environment() failed: %s" % described(error))


def _written() -> Tuple[int, ...]:
    """The marks of the file that change when it is written anew, or replaced."""
    try:
        status = os.stat(FILE)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ino, status.st_size
