"""The event loop of models whose `execute` is `async def`: one for the life of the worker, on a thread of its own.

As in Triton it never stops: tasks that a model leaves behind run on when `execute` has returned.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any


class LoopThread:
    """An event loop on its own thread, made when it is first needed."""

    def __init__(self) -> None:
        self._loop: Any = None

    @property
    def is_here(self) -> bool:
        """Whether this is the loop's thread."""
        return self._loop is not None and asyncio._get_running_loop() is self._loop

    def start(self, coroutine: Any) -> "Future[Any]":
        """Have a coroutine run on the loop, from any other thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._run, name="model-loop", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
