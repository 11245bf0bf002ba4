"""One route."""

from __future__ import annotations

from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, InferRoute, neutral_error


def contract(package: Package, settings: Settings) -> Contract:
    return Contract(routes=(InferRoute("/work", "/work"),), error=neutral_error)
