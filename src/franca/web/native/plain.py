"""The plain dialect: one route, errors as JSON."""

from __future__ import annotations

from franca.discovery import Package
from franca.settings import Settings
from franca.web.native.base import Contract, InferRoute, neutral_error


def contract(package: Package, settings: Settings) -> Contract:
    return Contract(routes=(InferRoute("/predict", "/predict"),), error=neutral_error)
