"""Ensembles: the steps of a request are calls of other models, and each runs as soon as it has its inputs."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, NamedTuple, Set

from panglot_worker.dialects.base import Package, Request
from panglot_worker.dialects.triton import answers
from panglot_worker.dialects.triton.answers import ModelRefusal
from panglot_worker.dialects.triton.configured import Configuration
from panglot_worker.errors import ClientError
from panglot_worker.items.calling import CalleeAnswer, OutgoingCalls
from panglot_worker.tensors import messages, tensors
from panglot_worker.tensors.infer import GRPC, Infer, Wishes
from panglot_worker.tensors.tensors import Tensor, nested_elements

MOST_OPEN = 512
"""Requests that a worker has at once: it does nothing but pass tensors on."""


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

    def __str__(self) -> str:
        return "step %d (%s)" % (self.number, self.model)


class EnsembleRequest(NamedTuple):
    """The tensors of a request by the ensemble's names, and what its client wants."""

    inputs: Dict[str, Tensor]
    wanted: Set[str]
    id: str
    parameters: Dict[str, Any]


class Ensemble:
    """A graph of calls between models of the server."""

    def __init__(self, package: Package, configuration: Configuration, calls: OutgoingCalls) -> None:
        self.name = package.name
        self.about = configuration
        self.calls = calls
        self.steps = [Step(number, **step) for number, step in enumerate(package.options["ensemble"], 1)]

    # In

    def decode(self, request: Request) -> EnsembleRequest:
        """Plain JSON: an object with an array for each input. Raises ClientError."""
        from panglot_worker.bodies import codec

        sent = codec.decode(request.content_type, request.body, codec.Limits(), None)
        if not isinstance(sent, dict):
            raise ClientError("send a JSON object with %s" % ", ".join(tensor.name for tensor in self.about.inputs))
        inputs = {}
        for name, value in sent.items():
            listed = value if isinstance(value, list) else [value]
            datatype = self.about.wanted(name).datatype
            inputs[name] = tensors.from_json(name, datatype, _shape(listed), listed)
        request.rows = self.about.check(inputs)
        return EnsembleRequest(inputs, set(), "", {})

    def decode_tensors(self, infer: Infer, request: Request) -> EnsembleRequest:
        """The tensors of a request. Raises ClientError for those that the ensemble does not take."""
        for name, tensor in infer.inputs.items():
            expected = self.about.wanted(name).datatype
            if tensor.datatype != expected:
                raise ClientError("the input '%s' is %s, not %s" % (name, expected, tensor.datatype))
        request.rows = self.about.check(infer.inputs)
        wanted = {output.name for output in infer.wishes.wanted}
        return EnsembleRequest(infer.inputs, wanted, infer.wishes.id, infer.parameters)

    # Running

    async def infer(self, request: EnsembleRequest) -> Dict[str, Tensor]:
        """Run the steps that the wanted outputs need. Raises StepFailed."""
        outputs = [tensor.name for tensor in self.about.outputs]
        wanted = request.wanted or set(outputs)
        values = dict(request.inputs)
        absent = {tensor.name for tensor in self.about.inputs if tensor.name not in values}
        waiting = self._needed(wanted)
        running: Dict["asyncio.Future[Any]", Step] = {}
        try:
            while waiting or running:
                known = values.keys() | absent
                for step in [step for step in waiting if known.issuperset(step.inputs.values())]:
                    waiting.remove(step)
                    given = {inner: values[name] for inner, name in step.inputs.items() if name in values}
                    running[asyncio.ensure_future(self._call(step, given, request))] = step
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    step = running.pop(task)
                    given = task.result()
                    for inner, name in step.outputs.items():
                        if inner in given:
                            values[name] = given[inner]._replace(name=name)
                        else:
                            # A step may leave an output out: what needs it fails, and a client is not given it.
                            self._check_unneeded(name, step, waiting, request.wanted)
                            absent.add(name)
        finally:
            for task in running:
                task.cancel()
        return {name: values[name] for name in outputs if name in wanted and name in values}

    def _needed(self, wanted: Set[str]) -> List[Step]:
        """The steps that lead to some outputs, in their order."""
        needed: Set[int] = set()
        names = list(wanted)
        while names:
            name = names.pop()
            for step in self.steps:
                if name in step.outputs.values() and step.number not in needed:
                    needed.add(step.number)
                    names += step.inputs.values()
        return [step for step in self.steps if step.number in needed]

    def _check_unneeded(self, name: str, step: Step, waiting: List[Step], wanted: Set[str]) -> None:
        """Raises StepFailed where somebody needs an output that a step did not give."""
        needs = next((str(other) for other in waiting if name in other.inputs.values()), "")
        if needs or name in wanted:
            inner = next(inner for inner, outer in step.outputs.items() if outer == name)
            about = (self.name, step, inner, name, needs or "the request")
            raise StepFailed("in ensemble %s, %s gave no output '%s' ('%s'), which %s needs" % about, 500, "")

    async def _call(self, step: Step, given: Dict[str, Tensor], request: EnsembleRequest) -> Dict[str, Tensor]:
        inputs = {inner: tensor._replace(name=inner) for inner, tensor in given.items()}
        # No outputs are named: a model may leave some out, which would be an error for those that are named.
        wishes = Wishes(GRPC, step.model, step.version, request.id)
        body = messages.request(Infer(wishes, inputs, request.parameters))
        answered: "asyncio.Future[CalleeAnswer]" = asyncio.get_running_loop().create_future()

        def take(answer: CalleeAnswer) -> None:
            # The event loop itself reads from the front, so that this runs on its thread.
            if not answered.done():
                answered.set_result(answer)

        number = self.calls.begin(step.model, step.version, body, take)
        try:
            answer = await answered
        finally:
            self.calls.cancel(number)
        if answer.status != 200:
            sentence = "in ensemble %s, %s: %s" % (self.name, step, answer.message)
            raise StepFailed(sentence, answer.status, answer.code)
        return messages.response(answer.body).outputs

    # Out

    def encode_tensors(self, outputs: Dict[str, Tensor], request: Request) -> List[Tensor]:
        return list(outputs.values())


def as_lists(tensor: Tensor) -> Any:
    """A tensor as JSON has it: text as text, other bytes in base64."""
    if tensor.datatype == "BYTES":
        return nested_elements([answers.text_of(element) for element in tensor.data], tensor.shape)
    return tensor.nested()


def _shape(value: Any) -> Any:
    sizes: List[int] = []
    while isinstance(value, list):
        sizes.append(len(value))
        value = value[0] if value else None
    return tuple(sizes)
