"""The HTTP contract of each platform, one module per dialect."""

from __future__ import annotations

import importlib

from franca.discovery import Package
from franca.settings import Settings
from franca.web.native.base import Contract

MODULES = {
    "evals": "franca.web.native.evals",
    "megflow": "franca.web.native.megflow",
    "modelarts": "franca.web.native.modelarts",
    "tiinfer": "franca.web.native.tiinfer",
    "paddle": "franca.web.native.paddle",
    "plain": "franca.web.native.plain",
}
"""Each module has `contract(package, settings)`."""


def find(package: Package, settings: Settings) -> Contract:
    found: Contract = importlib.import_module(MODULES[package.dialect]).contract(package, settings)
    return found
