"""A request on its way through an ensemble: each step is called as soon as it has its inputs."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, AsyncGenerator, Dict, List, NamedTuple, Optional, Set

from panglot_worker.dialects.triton.answers import ModelRefusal
from panglot_worker.dialects.triton.writing import NOT_ONE
from panglot_worker.errors import ClientError
from panglot_worker.items.calling import CalleeAnswer
from panglot_worker.scripts import current
from panglot_worker.tensors import messages
from panglot_worker.tensors.infer import GRPC, STREAM, Infer, Wishes
from panglot_worker.tensors.tensors import Tensor

if TYPE_CHECKING:
    from panglot_worker.dialects.triton.ensembles import Ensemble


class StepFailed(ModelRefusal):
    """A step was answered with an error, which becomes the answer, with the step named."""

    def __init__(self, message: str, status: int, code: str) -> None:
        Exception.__init__(self, message)
        self.answer_status = status
        self.code = code or "script_error"


class Step(NamedTuple):
    """A call of a model. The maps have the model's names, and those of the ensemble."""

    number: int
    model: str
    version: str
    inputs: Dict[str, str]
    outputs: Dict[str, str]
    decoupled: bool = False
    """Whether it gives any number of responses: the steps behind it run once for each."""

    def __str__(self) -> str:
        return "step %d (%s)" % (self.number, self.model)


class EnsembleRequest(NamedTuple):
    """The tensors of a request by the ensemble's names, and what its client wants."""

    inputs: Dict[str, Tensor]
    wanted: Set[str]
    id: str
    parameters: Dict[str, Any]
    is_alone: bool = False
    """Whether its client takes exactly one response."""


class Walk:
    """The steps of one request. All of it runs on the thread of the event loop, which also reads from the front."""

    def __init__(self, ensemble: "Ensemble", request: EnsembleRequest, wanted: Set[str], steps: List[Step]) -> None:
        self._ensemble = ensemble
        self._calls = ensemble.calls
        self._request = request
        self._wanted = wanted
        self._waiting = steps
        self._values = dict(request.inputs)
        self._absent = {tensor.name for tensor in ensemble.about.inputs if tensor.name not in request.inputs}
        """Names without a value: inputs that were not sent, outputs that a step left out, values that are used up."""
        self._items = current.current()
        """The requests that the calls are made for."""
        self._open: Dict[int, int] = {}
        """The calls that are under way, by step."""
        self._settled: "Optional[asyncio.Future[None]]" = None
        """Done once no step is under way; None while nobody waits for that."""

    async def outputs(self) -> Dict[str, Tensor]:
        """The outputs of an ensemble whose steps give one response each. Raises StepFailed."""
        await self._settle()
        outputs = (tensor.name for tensor in self._ensemble.about.outputs)
        return {name: self._values[name] for name in outputs if name in self._wanted and name in self._values}

    async def responses(self) -> AsyncGenerator[Dict[str, Tensor], None]:
        """The outputs for every response of a decoupled step. Raises StepFailed."""
        outputs = await self.outputs()
        decoupled = next((step for step in self._waiting if step.decoupled and self._has_inputs(step)), None)
        if decoupled is None:
            yield outputs
            return
        coming: "asyncio.Queue[CalleeAnswer]" = asyncio.Queue()
        number = self._begin(decoupled, coming.put_nowait, STREAM)
        try:
            is_last = False
            while not is_last:
                answer = await coming.get()
                is_last = not answer.more
                # The end of a stream may come alone, without a message.
                if answer.status == 200 and not len(answer.body):
                    continue
                async for part in self._after(decoupled, answer).responses():
                    yield part
                self._calls.took(number, answer)
        finally:
            self._calls.cancel(number)

    async def only_outputs(self) -> Dict[str, Tensor]:
        """The outputs of the only response. Raises ClientError where there is not exactly one."""
        responses = [outputs async for outputs in self.responses()]
        if len(responses) != 1:
            raise ClientError(NOT_ONE)
        return responses[0]

    def _after(self, decoupled: Step, answer: CalleeAnswer) -> "Walk":
        """What follows one response of a decoupled step."""
        waiting = [step for step in self._waiting if step is not decoupled]
        walk = Walk(self._ensemble, self._request, self._wanted, waiting)
        walk._values, walk._absent, walk._items = dict(self._values), set(self._absent), self._items
        walk._take_outputs(decoupled, answer)
        return walk

    async def _settle(self) -> None:
        """Run all steps but those that wait for a decoupled one. Raises StepFailed."""
        self._settled = asyncio.get_running_loop().create_future()
        self._advance()
        try:
            await self._settled
        finally:
            # A failed future refers to its exception, that to this frame, and this to the tensors: a circle that would
            # keep them until garbage is looked for.
            self._settled = None
            for number in self._open.values():
                self._calls.cancel(number)

    def _advance(self) -> None:
        """Call the steps that have their inputs now."""
        for step in [step for step in self._waiting if not step.decoupled and self._has_inputs(step)]:
            self._waiting.remove(step)
            self._open[step.number] = self._begin(step, functools.partial(self._on_answer, step))
        # Values that no step needs any more: their memory goes back to the front long before the last answer.
        needed = self._wanted.union(*(step.inputs.values() for step in self._waiting))
        for name in [name for name in self._values if name not in needed]:
            del self._values[name]
            self._absent.add(name)
        if not self._open and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def _has_inputs(self, step: Step) -> bool:
        return all(name in self._values or name in self._absent for name in step.inputs.values())

    def _begin(self, step: Step, take: Any, form: bytes = GRPC) -> int:
        inputs = {
            inner: self._values[name]._replace(name=inner)
            for inner, name in step.inputs.items()
            if name in self._values
        }
        # No outputs are named: a model may leave some out, which would be an error for those that are named.
        wishes = Wishes(form, step.model, step.version, self._request.id)
        body = messages.request(Infer(wishes, inputs, self._request.parameters))
        return self._calls.begin(step.model, step.version, body, take, streams=form == STREAM, requests=self._items)

    def _on_answer(self, step: Step, answer: CalleeAnswer) -> None:
        # An answer that comes at once, such as a refusal, comes before the call has its number.
        self._open.pop(step.number, None)
        if self._settled is None or self._settled.done():
            return
        try:
            self._take_outputs(step, answer)
            self._advance()
        except Exception as error:
            self._settled.set_exception(error)

    def _take_outputs(self, step: Step, answer: CalleeAnswer) -> None:
        """Take what a step gave. Raises StepFailed."""
        if answer.status != 200:
            sentence = "in ensemble %s, %s: %s" % (self._ensemble.name, step, answer.message)
            raise StepFailed(sentence, answer.status, answer.code)
        given = messages.response(answer.body).outputs
        for inner, name in step.outputs.items():
            if inner in given:
                self._values[name] = given[inner]._replace(name=name)
            else:
                # A step may leave an output out: what needs it fails, and a client is not given it.
                self._check_unneeded(name, inner, step)
                self._absent.add(name)

    def _check_unneeded(self, name: str, inner: str, step: Step) -> None:
        """Raises StepFailed where a step or the client needs an output that a step did not give."""
        needs = next((str(other) for other in self._waiting if name in other.inputs.values()), "")
        if needs or name in self._request.wanted:
            about = (self._ensemble.name, step, inner, name, needs or "the request")
            raise StepFailed("in ensemble %s, %s gave no output '%s' ('%s'), which %s needs" % about, 500, "")
