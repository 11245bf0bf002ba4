"""The plain dialect: one route, errors as JSON."""

from __future__ import annotations

from franca.web.native.base import Contract, InferRoute, neutral_error

PLAIN = Contract(routes=(InferRoute("/predict", "/predict"),), error=neutral_error)
