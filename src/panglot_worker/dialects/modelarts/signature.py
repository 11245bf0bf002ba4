"""The form of a request, by the signature of the model, for packages whose config.json does not describe it."""

from __future__ import annotations

import os
import sys
from functools import reduce
from typing import Any, Dict, List, Optional

from panglot_worker.dialects.modelarts.service import has_own
from panglot_worker.line.description import Description

MOST_NUMBERS = 1024
"""An example with more numbers than this helps nobody."""
LARGEST_FILE = 64 * 1024 * 1024
"""Bytes of a saved_model.pb that is read for its signature alone."""
PICTURE = 64
"""An input with fewer numbers than this is no picture."""
ZEROS = {"f": 0.0, "i": 0, "u": 0, "b": False}
"""A value of an input by the first letter of its type's name."""
WORDS = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}


def described(service: Any, picture_type: str) -> Description:
    """Schema and example of a request, in the words of a worker's description; {} when the signature does not tell.

    A script without a `_preprocess` of its own takes the model's inputs as JSON. One that has its own is shown a form
    with a file for each input, as the platform's samples want it, if the inputs may be pictures.
    """
    try:
        inputs = _inputs(service)
    except Exception:
        return {}  # the loader of the model reports what is wrong with it
    if not inputs:
        return {}
    if _takes_inputs(service):
        return _as_json(inputs)
    if type(service).__name__.endswith("VisionService") or all(_may_be_picture(about) for about in inputs.values()):
        files = dict.fromkeys(inputs, picture_type)
        return {"example": {"kind": "form", "files": files, "names": {}, "fields": []}}
    return {}


def _inputs(service: Any) -> Dict[str, Any]:
    """The inputs of the model that the base class runs, or would run; none where only loading it would tell them."""
    choose = getattr(service, "default_inference_model", None)
    model = choose() if callable(choose) and not has_own(service, "default_inference_model") else None
    if model is None:
        return {}
    if has_own(service, "_inference") or has_own(service, "inference"):
        file = os.path.join(str(model.model_path), "saved_model.pb")
        if "tensorflow" not in sys.modules or os.path.getsize(file) > LARGEST_FILE:
            return {}
    inputs: Dict[str, Any] = model.described_inputs()
    return inputs


def _takes_inputs(service: Any) -> bool:
    """Whether a request is the model's inputs: neither the script nor a base class prepares it."""
    if has_own(service, "inference"):
        return False
    plain = sys.modules["model_service.model_service"].SingleNodeService
    return type(service)._preprocess is plain._preprocess and "_preprocess" not in vars(service)


def _may_be_picture(about: Any) -> bool:
    """Whether an input, without its first size, which is that of a batch, has enough numbers, or any number of them."""
    sizes: Optional[List[Optional[int]]] = about.shape
    if sizes is None or about.dtype[0] not in ZEROS:
        return sizes is None
    return None in sizes[1:] or _product(sizes[1:]) >= PICTURE


def _as_json(inputs: Dict[str, Any]) -> Description:
    properties = {name: _schema(about) for name, about in inputs.items()}
    api: Description = {
        "request_types": ["application/json"],
        "request_schema": {"type": "object", "properties": properties, "required": list(inputs)},
    }
    known = all(about.shape is not None and about.dtype[0] in ZEROS for about in inputs.values())
    if known and sum(_product(about.shape) for about in inputs.values()) <= MOST_NUMBERS:
        value = {name: _zeros(about.shape, ZEROS[about.dtype[0]]) for name, about in inputs.items()}
        api["example"] = {"kind": "json", "value": value}
    return api


def _schema(about: Any) -> Dict[str, Any]:
    schema: Dict[str, Any] = {"type": WORDS[about.dtype[0]]} if about.dtype[0] in WORDS else {}
    for size in reversed(about.shape or ()):
        schema = {"type": "array", "items": schema}
        if size is not None:
            schema.update(minItems=size, maxItems=size)
    return {} if about.shape is None else schema


def _product(sizes: List[Optional[int]]) -> int:
    return reduce(lambda product, size: product * (1 if size is None else size), sizes, 1)


def _zeros(sizes: List[Optional[int]], zero: Any) -> Any:
    if not sizes:
        return zero
    return [_zeros(sizes[1:], zero) for _ in range(1 if sizes[0] is None else sizes[0])]
