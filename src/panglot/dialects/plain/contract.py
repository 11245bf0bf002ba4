"""The plain dialect: one route, and one for videos where the script takes frames; errors as JSON."""

from __future__ import annotations

from panglot.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, InferRoute, neutral_error

UPLOAD = InferRoute(
    "/analyze_video", "/analyze_video", takes=("video/*", "application/octet-stream"), gives="text/event-stream",
    spooled=True,
)  # fmt: skip
"""Of scripts with `predict_frame`: a video in the body, its results as the answer."""


def contract(package: Package, settings: Settings) -> Contract:
    routes = (InferRoute("/predict", "/predict"),)
    return Contract(routes=(*routes, UPLOAD) if package.options.get("frames") else routes, error=neutral_error)
