"""The server's own questions to a model's script, for pages of its platform that only the script can answer."""

from __future__ import annotations

import asyncio
import json
import time

from panglot.engine.call import Call, Fault
from panglot.web.contract import RouteRefused
from panglot.web.models import Model
from panglot_worker.line import wire


class Question(Call):
    """A request of the server's own, without a body, for a model's script."""

    __slots__ = ("answer", "model")

    def __init__(self, model: Model, head: wire.Head) -> None:
        super().__init__()
        self.model = model
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.request_id = head.request_id
        self.head = head.pack()
        self.lane = head.route.decode()
        self.arrived = time.monotonic()
        self.deadline = self.arrived + model.settings.timeout

    def reply(self, reply: wire.Reply) -> None:
        """Take the script's answer, or log its failure and fail."""
        if reply.flags & wire.ERROR:
            problem = json.loads(bytes(reply.body))
            if problem["traceback"]:
                self.model.engine.trouble("", problem["message"], problem["traceback"], self.worker)
            self.fail(Fault(reply.status, problem["code"], problem["message"]))
        elif not reply.flags & wire.MORE and not self.answer.done():
            self.answer.set_result(bytes(reply.body))

    def fail(self, fault: Fault) -> None:
        if not self.answer.done():
            self.answer.set_exception(RouteRefused(fault))


async def ask(model: Model, head: wire.Head, seconds: float | None = None) -> bytes:
    """The answer of a model's script. Raises RouteRefused, and TimeoutError when it takes longer than `seconds`."""
    call = Question(model, head)
    fault = model.engine.submit(call)
    if fault is not None:
        raise RouteRefused(fault)
    try:
        async with asyncio.timeout(seconds):
            return await call.answer
    finally:
        # Too late, or the asker was cancelled: the worker need not go on.
        if not call.answer.done() or call.answer.cancelled():
            model.engine.cancel(call)
