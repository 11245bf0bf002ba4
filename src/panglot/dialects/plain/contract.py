"""The plain dialect: /predict, the script's own routes, and a route for videos; errors as JSON."""

from __future__ import annotations

from panglot.dialects.plain import openai
from panglot.dialects.plain.routes import PREDICT
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, InferRoute, neutral_error

UPLOAD = InferRoute(
    "/analyze_video", "/analyze_video", takes=("video/*", "application/octet-stream"), gives="text/event-stream",
    spooled=True,
)  # fmt: skip
"""The route of scripts with `predict_frame`: a video in the body, its results as the answer."""


def contract(package: Package, settings: Settings) -> Contract:
    """A route for every endpoint of the script. Each route is a lane: no batch has requests of two routes."""
    uses_request = bool(package.options.get("uses_request"))
    first = [InferRoute(PREDICT, PREDICT, lane=PREDICT, whole_head=uses_request)]
    routes = first if package.options.get("predict", True) else []
    routes += [
        InferRoute(
            about["path"], about["path"], methods=tuple(about["methods"]), target=key, lane=key,
            whole_head=uses_request, without_body=not about["has_body"],
        )
        for key, about in package.options.get("routes", {}).items()
    ]  # fmt: skip
    routes += openai.routes(package.options)
    routes += [UPLOAD] if package.options.get("frames") else []
    return Contract(
        routes=tuple(routes),
        error=neutral_error,
        pages=openai.pages(package.options),
        admin=openai.lists(package.options),
    )
