"""From a script to the stages that serve it."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Dict, List, Type

from mosec import Worker

from tiinfer.const import (
    IMPORT_MODULE_NAME,
    Is_Multi_Framework_Type,
    get_ti_inference_max_batch_size,
    get_ti_inference_nums,
    get_ti_model_dir,
    get_ti_postprocess_nums,
    get_ti_preprocess_nums,
)
from tiinfer.model import Data, Model
from tiinfer.worker import get_mosec_workers


def model_classes(module: ModuleType) -> List[Type[Model]]:
    """The subclasses of Model a script has: those it defines first, then those it imports, each in code-point order."""
    models = [value for name, value in sorted(vars(module).items()) if _is_model(value)]
    distinct = list(dict.fromkeys(models))
    return sorted(distinct, key=lambda model: model.__module__ != module.__name__)


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Model) and value is not Model


def load_model_service() -> Model:
    """An instance of the script's model; it is not loaded yet. Raises LookupError when there is none."""
    classes = model_classes(importlib.import_module(IMPORT_MODULE_NAME))
    if not classes:
        raise LookupError("there is no subclass of tiinfer.Model in %s" % IMPORT_MODULE_NAME)
    return classes[0](get_ti_model_dir())


class Preprocess(Worker):
    """The stage before inference."""

    def __init__(self) -> None:
        super().__init__()
        self.model = load_model_service()

    def forward(self, request: Data) -> Data:
        return self.model.preprocess(request)


class Inference(Worker):
    """The stage that holds the loaded model; all three steps unless the others have stages of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.model = load_model_service()
        if not self.model.load():
            raise RuntimeError("load() of %s failed" % type(self.model).__name__)

    def forward(self, request: Data) -> Data:
        return self.model.predict(request) if Is_Multi_Framework_Type() else self.model(request)


class Postprocess(Worker):
    """The stage after inference."""

    def __init__(self) -> None:
        super().__init__()
        self.model = load_model_service()

    def forward(self, request: Data) -> Data:
        return self.model.postprocess(request)


def load_workers() -> List[Dict[str, Any]]:
    """The stages of the script, as calls of `append_worker` would give them."""
    if not model_classes(importlib.import_module(IMPORT_MODULE_NAME)):
        return get_mosec_workers()
    stages = []
    if get_ti_preprocess_nums() > 0:
        stages.append(_stage(Preprocess, get_ti_preprocess_nums(), 1))
    stages.append(_stage(Inference, get_ti_inference_nums(), get_ti_inference_max_batch_size()))
    if get_ti_postprocess_nums() > 0:
        stages.append(_stage(Postprocess, get_ti_postprocess_nums(), 1))
    return stages


def _stage(worker: Type[Worker], num: int, max_batch_size: int) -> Dict[str, Any]:
    return {"worker": worker, "num": num, "max_batch_size": max_batch_size, "start_method": "spawn", "env": None}
