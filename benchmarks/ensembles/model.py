"""A step of the ensemble, or all three of them in one script: its name says which. Copied into each model's folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy
import triton_python_backend_utils as pb_utils

MEAN = numpy.array([0.485, 0.456, 0.406], "float32").reshape(3, 1, 1)
DEVIATION = numpy.array([0.229, 0.224, 0.225], "float32").reshape(3, 1, 1)


def plus_one(values: Any) -> Any:
    return values + numpy.float32(1)


def normalized(values: Any) -> Any:
    """Pixels as networks want them."""
    return (values / numpy.float32(255) - MEAN) / DEVIATION


def activated(values: Any) -> Any:
    """What stands in for a network: a few looks at every value."""
    return numpy.tanh(values * numpy.float32(0.5) + numpy.float32(0.1))


def shares(values: Any) -> Any:
    """Each channel's values as parts of 1."""
    grown = numpy.exp(values - values.max(axis=(1, 2), keepdims=True))
    return grown / grown.sum(axis=(1, 2), keepdims=True)


WORK: dict[str, list[Callable[[Any], Any]]] = {
    "copy": [plus_one, plus_one, plus_one],
    "image": [normalized, activated, shares],
}


class TritonPythonModel:
    """Runs the steps that its configuration names, one after the other."""

    def initialize(self, args: dict[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        steps = WORK[parameters["work"]["string_value"]]
        self.steps = [steps[int(number)] for number in parameters["steps"]["string_value"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        responses = []
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            for step in self.steps:
                values = step(values)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", values)]))
        return responses
