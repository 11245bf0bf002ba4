"""One module per dialect; each is a `Dialect`."""

from __future__ import annotations

import importlib
from typing import Type

from panglot_worker.dialects.base import Dialect

MODULES = {
    "evals": "panglot_worker.dialects.evals:Evals",
    "megflow": "panglot_worker.dialects.megflow:Megflow",
    "modelarts": "panglot_worker.dialects.modelarts:Modelarts",
    "tiinfer": "panglot_worker.dialects.tiinfer:Tiinfer",
    "paddle": "panglot_worker.dialects.paddle:Paddle",
    "plain": "panglot_worker.dialects.plain:Plain",
}


def find(name: str) -> Type[Dialect]:
    module, _, attribute = MODULES[name].partition(":")
    found: Type[Dialect] = getattr(importlib.import_module(module), attribute)
    return found
