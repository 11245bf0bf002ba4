"""Models that send their responses themselves, when and as many as they like.

Such a model has a thread of its own for all its calls, so that what it sends goes out while it still runs.
"""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Iterator, Tuple

Job = Tuple[Callable[[], Any], "queue.Queue[Any]"]


class Failed:
    """What a call raised, on its way to the thread that waits for it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class OwnThread:
    """Runs calls of a model one after the other."""

    def __init__(self) -> None:
        self._jobs: "queue.Queue[Job]" = queue.Queue()
        threading.Thread(target=self._work, name="model", daemon=True).start()

    def _work(self) -> None:
        while True:
            call, result = self._jobs.get()
            try:
                result.put(call())
            except BaseException as error:
                result.put(Failed(error))
            # While the thread waits for the next job, these names would hold the request's tensors.
            del call, result

    def start(self, call: Callable[[], Any], result: "queue.Queue[Any]") -> None:
        """Have a call made, and what comes of it put into a queue."""
        self._jobs.put((call, result))

    def run(self, call: Callable[[], Any]) -> Any:
        """The result of a call. Raises what it raises."""
        result: "queue.Queue[Any]" = queue.Queue()
        self.start(call, result)
        return raised(result.get())


def raised(result: Any) -> Any:
    if isinstance(result, Failed):
        raise result.error
    return result


def responses(thread: OwnThread, execute: Callable[[Any], Any], request: Any, module: Any) -> Iterator[Any]:
    """The responses of a model to a request, as it sends them. Raises what the model raises."""
    coming = request._responses = module.Responses()

    def call() -> None:
        execute([request])
        # The model has returned without ever asking for its sender: no response can come, so nobody waits.
        if coming.handed_out is None:
            coming.nobody_sends()

    thread.start(call, OnlyFailures(coming.sent))
    try:
        while True:
            response = raised(coming.sent.get())
            if response is None:
                return
            if isinstance(response, module.Lost):
                raise response
            yield response
    finally:
        # Runs too when the client leaves: closing a generator raises GeneratorExit at its `yield`.
        coming.cancelled = True


def sent_alone(request: Any, module: Any) -> Any:
    """The response that a model sends instead of returning it; the exception, where it sends none or several."""
    coming = request._responses
    if coming is None:
        return None
    response = coming.sent.get()
    if response is not None and not isinstance(response, module.Lost):
        last = coming.sent.get()
        if last is not None:
            return last if isinstance(last, module.Lost) else module.Lost("the model sent more than one response")
    return module.Lost("the model sent no response") if response is None else response


class OnlyFailures(queue.Queue):  # type: ignore[type-arg]
    """Passes on what a call raised; that it returned says nothing about its responses."""

    def __init__(self, sent: "queue.Queue[Any]") -> None:
        super().__init__()
        self.sent = sent

    def put(self, item: Any, block: bool = True, timeout: Any = None) -> None:
        if isinstance(item, Failed):
            self.sent.put(item)
