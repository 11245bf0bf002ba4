"""What a model takes and gives, for the documents and the line of curl."""

from __future__ import annotations

import json
import mimetypes
import os
from typing import Any, Dict, List, Optional

from panglot_worker.bodies.schema import of_object, of_tensor
from panglot_worker.dialects.bare.pictures import PictureInput
from panglot_worker.files.package_files import UnreadableFile, json_value
from panglot_worker.line.description import Description, ExampleRequest
from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import FREE, NUMPY, ModelRuntime, ModelTensor, shown

LONGEST = 1 << 14
"""Characters of JSON up to which an example is shown."""
EXAMPLES = ("request.json", "example.json", "sample.json")
LARGEST = 1 << 20
BINARY = {"type": "string", "format": "binary"}


def describe(model: ModelRuntime, pictures: Dict[str, PictureInput], folder: str) -> Description:
    """The description of the API, with shapes."""
    # First: making one up runs the model, which only then knows the labels of some outputs.
    example = _example(model, pictures, folder)
    return {
        "entry": model.file.name,
        "stages": [],
        "summary": _summary(model),
        "request_schema": _request(model, pictures),
        "response_schema": of_object({spec.name: _schema(spec) for spec in model.outputs}),
        "example": example,
        "streams": False,
        "bytes": _bytes(model),
    }


def _summary(model: ModelRuntime) -> str:
    takes = ", ".join("%s %s %s" % (spec.name, spec.datatype, shown(spec.shape)) for spec in model.inputs)
    gives = ", ".join(_output(model, spec) for spec in model.outputs)
    return "The model in %s. It takes %s and gives %s." % (model.file.name, takes or "nothing", gives or "nothing")


def _output(model: ModelRuntime, spec: ModelTensor) -> str:
    labels = model.labels(spec.name)
    columns = " (columns: %s)" % ", ".join(labels[:100]) if labels else ""
    return "%s %s %s%s" % (spec.name, spec.datatype, shown(spec.shape), columns)


def _request(model: ModelRuntime, pictures: Dict[str, PictureInput]) -> Dict[str, Any]:
    named = of_object({spec.name: _schema(spec) for spec in model.inputs})
    if len(model.inputs) != 1:
        return named
    only = model.inputs[0]
    whole = [] if only.datatype == "BYTES" or only.sequence else [BINARY]
    return {"anyOf": [named, _schema(only), *whole]}


def _schema(spec: ModelTensor) -> Dict[str, Any]:
    """Nested arrays, as deep as the shape says."""
    if spec.shape is None or spec.sequence:
        return {"description": "%s of %s" % ("arrays" if spec.sequence else "an array of any shape", spec.datatype)}
    return {**of_tensor(spec.datatype, spec.shape), "description": "%s %s" % (spec.datatype, shown(spec.shape))}


def _bytes(model: ModelRuntime) -> int:
    """How many bytes one row of the only input has; 0 where it cannot be sent as bytes."""
    import numpy

    if len(model.inputs) != 1 or model.inputs[0].datatype in ("BYTES", "BF16"):
        return 0
    shape = model.inputs[0].shape
    if not shape or any(size == FREE for size in shape[1:]):
        return 0
    return int(numpy.prod([abs(size) for size in shape])) * int(numpy.dtype(NUMPY[model.inputs[0].datatype]).itemsize)


# Examples


def _example(model: ModelRuntime, pictures: Dict[str, PictureInput], folder: str) -> Optional[ExampleRequest]:
    """The example of the package, else one that is made up, if it is short."""
    given = given_example(folder)
    if given is not None:
        return {"kind": "json", "value": given}
    if len(model.inputs) == 1 and pictures:
        name = _picture_in(folder)
        if name:
            return {"kind": "file", "type": mimetypes.guess_type(name)[0], "name": name}
    trial = probing.first_that_runs(model)
    if trial is None:
        return None
    arrays = trial.arrays(model.inputs, 1)
    if sum(array.size for array in arrays.values()) > LONGEST // 4:
        return None
    value = {name: _short(array) for name, array in arrays.items()}
    return {"kind": "json", "value": value} if len(json.dumps(value)) < LONGEST else None


def _short(array: Any) -> Any:
    return (array.astype("float64").round(2) if array.dtype.kind == "f" else array).tolist()


def given_example(folder: str) -> Any:
    """The request in a file beside the model; None where there is none."""
    for name in EXAMPLES:
        try:
            return json_value(os.path.join(folder, name), LARGEST)
        except (OSError, UnreadableFile):
            continue
    return None


def _picture_in(folder: str) -> str:
    names: List[str] = sorted(os.listdir(folder))
    return next((name for name in names if (mimetypes.guess_type(name)[0] or "").startswith("image/")), "")
