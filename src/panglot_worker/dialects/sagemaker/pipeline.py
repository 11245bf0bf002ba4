"""Inference pipelines: each model of the chain gets the answer of the model before, with its content type."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Dict, List, NamedTuple

from panglot_worker.dialects.base import Answer, Package, Problem, Request
from panglot_worker.dialects.sagemaker import invocations
from panglot_worker.dialects.sagemaker.invocations import Invocation
from panglot_worker.items.calling import CalleeAnswer, OutgoingCalls

MOST_OPEN = 512
"""Requests that a worker has at once: it does nothing but pass bodies on."""
STEP = "x-panglot-container"


class PipelineRequest(NamedTuple):
    """A request, and what its client accepts."""

    invocation: Invocation
    accept: str


class ContainerAnswer(NamedTuple):
    """The answer of the last container, or of one that answered with an error."""

    container: str
    answer: CalleeAnswer


class ContainerFailed(Exception):
    """A container gave no answer of its own; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Pipeline:
    """A chain of calls of models."""

    def __init__(self, package: Package, calls: OutgoingCalls) -> None:
        self.containers: List[Dict[str, str]] = package.options["pipeline"]
        self.calls = calls

    def decode(self, request: Request) -> PipelineRequest:
        """The request for the first container. Raises Refused, Fetching."""
        return PipelineRequest(invocations.read(request), invocations.accept(request))

    async def infer(self, request: PipelineRequest) -> ContainerAnswer:
        """The answer of the last container, or the first that is an error. Raises ContainerFailed."""
        body, content_type = request.invocation
        for number, container in enumerate(self.containers, 1):
            name = "%d %s" % (number, container["model"])
            # Only the last one answers the client: those before answer as their environment says.
            accept = request.accept if number == len(self.containers) and request.accept else container["accept"]
            answer = await self._call(container["model"], body, {"content_type": content_type, "accept": accept})
            if answer.code or answer.more:
                message = answer.message or "it answers in parts, which no container of a pipeline can"
                code = answer.code or "script_error"
                status = answer.status if answer.code else 500
                raise ContainerFailed(Problem(status, code, "in container %s: %s" % (name, message)))
            if answer.status >= 400:
                return ContainerAnswer(name, answer)
            body, content_type = answer.body, answer.content_type
        return ContainerAnswer(name, answer)

    async def _call(self, model: str, body: Any, native: Dict[str, str]) -> CalleeAnswer:
        answered: "asyncio.Future[CalleeAnswer]" = asyncio.get_running_loop().create_future()
        take = functools.partial(_deliver, answered)
        number = self.calls.begin(model, "", body, take, native=native)
        try:
            return await answered
        finally:
            # For a task that is cancelled: its model need not answer. After an answer this does nothing.
            self.calls.cancel(number)
            # A failed future refers to its exception, and that to this frame: the circle would keep the body.
            del answered, take

    def encode(self, output: ContainerAnswer, request: Request) -> Answer:
        answer = output.answer
        lines = ["%s: %s" % (STEP, output.container)] if answer.status >= 400 else []
        return Answer(answer.content_type, answer.body, answer.status, lines)


def _deliver(answered: "asyncio.Future[CalleeAnswer]", answer: CalleeAnswer) -> None:
    # The event loop itself reads from the front, so that this runs on its thread.
    if not answered.done():
        answered.set_result(answer)
