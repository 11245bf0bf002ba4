"""Model files: one route, errors as JSON."""

from __future__ import annotations

from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, InferRoute, neutral_error


def contract(package: Package, settings: Settings) -> Contract:
    return Contract(routes=(InferRoute("/predict", "/predict"),), error=neutral_error)
