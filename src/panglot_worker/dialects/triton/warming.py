"""The requests of `model_warmup`, which run before a model is ready."""

from __future__ import annotations

import os
import queue
from functools import partial
from typing import Any, Dict, List

from panglot_worker.dialects.triton import answers
from panglot_worker.dialects.triton.configured import ConfiguredTensor
from panglot_worker.dialects.triton.sequence_inputs import SequenceInputs
from panglot_worker.errors import described
from panglot_worker.tensors.datatypes import DATATYPES

FOLDER = "warmup"
"""Beside the versions of a model: the files that `input_data_file` names."""
LONGEST_WAIT = 600.0
"""Seconds in which a decoupled model must have sent its last response."""


class WarmUpError(Exception):
    """A request of `model_warmup` that cannot be made, or that the model does not answer."""


class Collected:
    """The way of the responses that a decoupled model sends while it warms up."""

    def __init__(self) -> None:
        self.coming: "queue.SimpleQueue[Any]" = queue.SimpleQueue()

    def take(self, response: Any, last: bool) -> None:
        """Note a response, and the end."""
        if response is not None:
            self.coming.put(response)
        if last:
            self.coming.put(None)

    def lost(self) -> None:
        """Note that nothing more can come."""
        self.coming.put(WarmUpError("the model let go of its request and sent no last response"))

    def is_cancelled(self) -> bool:
        return False

    def check(self) -> None:
        """Wait for the last response. Raises what one of them says."""
        while True:
            response = self.coming.get(timeout=LONGEST_WAIT)
            if response is None:
                return
            answers.checked(response)


def run(dialect: Any, samples: List[Dict[str, Any]]) -> None:
    """Run all samples, each as often as it says. Raises WarmUpError."""
    for number, sample in enumerate(samples):
        name = str(sample.get("name") or number)
        for _ in range(max(1, int(sample.get("count", 1)))):
            try:
                _run(dialect, sample)
            except Exception as error:
                raise WarmUpError("model_warmup %s: %s" % (name, described(error))) from error


def _run(dialect: Any, sample: Dict[str, Any]) -> None:
    about = dialect.configuration
    rows = max(1, int(sample.get("batch_size", 1))) if about.rows else 1
    arrays = {name: _array(dialect, name, content) for name, content in (sample.get("inputs") or {}).items()}
    # As in Triton: a batch is requests of one row each, which the model gets together.
    batch = [dialect.new_request(dict(arrays), {"request_id": ""}) for _ in range(rows)]
    if dialect.sequences is not None:
        added = SequenceInputs(dialect.sequences, about.rows > 0, dialect.utils)
        for made in batch:
            made.request._inputs += [*added.controls(1, True, True), *added.first_states()]
    if not about.decoupled:
        calls = [batch] if about.shares else [[made] for made in batch]
        for call in calls:
            for response in dialect.execute(call):
                answers.checked(response)
        return
    while batch:
        way, requests = Collected(), [batch.pop().request]
        requests[0]._responses = dialect.utils.Responses(way, decoupled=True)
        dialect.called(partial(dialect.model.execute, requests))
        # No variable here may refer to the request while the model answers it: see `Responses`.
        requests.clear()
        way.check()


def _array(dialect: Any, name: str, content: Dict[str, Any]) -> Any:
    """The content of an input."""
    tensor = dialect.configuration.wanted(name)
    shape = [int(size) for size in content.get("dims") or tensor.dims]
    if min(shape, default=1) < 0:
        raise WarmUpError("dims of the input %s must be sizes, not %s" % (name, shape))
    if dialect.configuration.rows:
        shape = [1, *shape]
    if "input_data_file" in content:
        return _of_file(dialect, tensor, str(content["input_data_file"]), shape)
    return _made(tensor, shape, bool(content.get("random_data")))


def _made(tensor: ConfiguredTensor, shape: List[int], random: bool) -> Any:
    import numpy

    if tensor.datatype == "BYTES":
        return numpy.full(shape, b"", object)
    kind = numpy.dtype(DATATYPES[tensor.datatype].numpy or "float32")
    if not random:
        return numpy.zeros(shape, kind)
    numbers = numpy.random.default_rng().random(shape)
    return (numbers if kind.kind == "f" else numbers * (2 if kind.kind == "b" else 100)).astype(kind)


def _of_file(dialect: Any, tensor: ConfiguredTensor, name: str, shape: List[int]) -> Any:
    import numpy

    folder = os.path.join(dialect.package.options["root"], FOLDER)
    path = os.path.realpath(os.path.join(folder, name))
    if not path.startswith(os.path.realpath(folder) + os.sep):
        raise WarmUpError("%s is no file of %s" % (name, folder))
    with open(path, "rb") as file:
        content = file.read()
    if tensor.datatype == "BYTES":
        return dialect.utils.deserialize_bytes_tensor(content).reshape(shape)
    if tensor.datatype == "BF16":
        return (numpy.frombuffer(content, "<u2").astype("u4") << 16).view("<f4").reshape(shape)
    return numpy.frombuffer(content, numpy.dtype(DATATYPES[tensor.datatype].numpy)).reshape(shape).copy()
