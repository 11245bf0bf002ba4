"""Ensembles: the steps of a request are calls of other models, and each runs as soon as it has its inputs."""

from __future__ import annotations

from typing import Any, AsyncGenerator, Dict, List, Set

from panglot_worker.dialects.base import Package, Request
from panglot_worker.dialects.triton import answers
from panglot_worker.dialects.triton.configured import Configuration
from panglot_worker.dialects.triton.ensemble_walk import EnsembleRequest, Step, Walk
from panglot_worker.dialects.triton.reading import Readers
from panglot_worker.errors import ClientError
from panglot_worker.items.calling import OutgoingCalls
from panglot_worker.line.port import Port
from panglot_worker.scripts import current
from panglot_worker.tensors import tensors
from panglot_worker.tensors.infer import GENERATE, Infer
from panglot_worker.tensors.tensors import Tensor, nested_elements

MOST_OPEN = 512
"""Requests that a worker has at once: it does nothing but pass tensors on."""

Responses = AsyncGenerator[Dict[str, Tensor], None]


class Ensemble:
    """A graph of calls between models of the server."""

    def __init__(self, package: Package, configuration: Configuration, port: Port) -> None:
        self.name = package.name
        self.about = configuration
        self.calls = OutgoingCalls(port)
        # A call without a part for `run_timeout` is taken for a hung one.
        self.readers = Readers(port, float(package.settings.get("run_timeout", 60)) / 2)
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
        given = [output.name for output in self.about.outputs]
        for name in sorted(wanted.difference(given)):
            raise ClientError("there is no output '%s'; there is %s" % (name[:80], ", ".join(given)))
        is_alone = infer.wishes.form == GENERATE
        return EnsembleRequest(infer.inputs, wanted, infer.wishes.id, infer.parameters, is_alone)

    # Running

    def infer(self, request: EnsembleRequest) -> Any:
        """The outputs, awaited; with a decoupled step, the outputs of every response. Raises StepFailed."""
        wanted = request.wanted or {tensor.name for tensor in self.about.outputs}
        walk = Walk(self, request, wanted, self._needed(wanted))
        if not self.about.decoupled:
            return walk.outputs()
        return walk.only_outputs() if request.is_alone else self._paced(walk.responses())

    async def _paced(self, responses: Responses) -> Responses:
        """The responses, each once the client has read enough of those before it."""
        item = current.current()[0].id
        self.readers.begin(item)
        try:
            async for response in responses:
                yield response
                await self.readers.wait(item)
        finally:
            self.readers.end(item)
            # It may stand at a response: closed, it cancels the calls of its steps.
            await responses.aclose()

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
