"""The HTTP contract of each platform, one module per dialect."""

from __future__ import annotations

import importlib

from panglot.discovery import Package
from panglot.settings import Settings
from panglot.web.native.base import Contract

MODULES = {
    "evals": "panglot.web.native.evals",
    "megflow": "panglot.web.native.megflow",
    "modelarts": "panglot.web.native.modelarts",
    "tiinfer": "panglot.web.native.tiinfer",
    "paddle": "panglot.web.native.paddle",
    "plain": "panglot.web.native.plain",
}
"""Each module has `contract(package, settings)`."""


def find(package: Package, settings: Settings) -> Contract:
    found: Contract = importlib.import_module(MODULES[package.dialect]).contract(package, settings)
    return found
