"""One module per dialect; each is a `Dialect`."""

from __future__ import annotations

import importlib
from typing import Type

from franca_worker.dialects.base import Dialect

MODULES = {
    "evals": "franca_worker.dialects.evals:Evals",
    "megflow": "franca_worker.dialects.megflow:Megflow",
    "modelarts": "franca_worker.dialects.modelarts:Modelarts",
    "tiinfer": "franca_worker.dialects.tiinfer:Tiinfer",
    "paddle": "franca_worker.dialects.paddle:Paddle",
    "plain": "franca_worker.dialects.plain:Plain",
}


def find(name: str) -> Type[Dialect]:
    module, _, attribute = MODULES[name].partition(":")
    found: Type[Dialect] = getattr(importlib.import_module(module), attribute)
    return found
