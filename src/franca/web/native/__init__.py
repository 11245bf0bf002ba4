"""The HTTP contract of each platform, one module per dialect."""

from __future__ import annotations

import importlib

from franca.web.native.base import Contract

MODULES = {
    "plain": "franca.web.native.plain:PLAIN",
}


def find(dialect: str) -> Contract:
    module, _, name = MODULES[dialect].partition(":")
    contract: Contract = getattr(importlib.import_module(module), name)
    return contract
