"""AVA evals: POST /v1/eval and /v1/batch, GET /health and /configs of the platform's server."""

from __future__ import annotations

import json
from collections import defaultdict

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.evals.config import KINDS, shown
from panglot.engine import interface as states
from panglot.metrics.counters import heading
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import ADMIN, PUBLIC, Contract, InferRoute, Page, v2_error
from panglot.web.models import Model

COUNTERS = {"panglot_item_codes_total": "items answered by the script, by the code of their result"}
RESPONSE_TIME = "ava_serving_eval_response_time"


def contract(package: Package, settings: Settings) -> Contract:
    """The routes, pages and errors of the platform's own server."""
    return Contract(
        routes=(InferRoute("/v1/eval", "/v1/eval"), InferRoute("/v1/batch", "/v1/batch")),
        error=v2_error,
        pages=(Page("/health", PUBLIC, health), Page("/configs", ADMIN, configs)),
        unknown=v2_error,
        metrics=measured,
        counters=COUNTERS,
        fold_case=True,
        id_header=b"x-reqid",
    )


def health(model: Model, request: Request) -> Response:
    """`ok` and the app's name. The platform's own server does not listen before the script is loaded."""
    if model.engine.state in states.SERVING:
        return Response(f"ok {model.package.options.get('app', '')}", media_type="text/plain")
    return Response("not ready", 503, {"retry-after": "2"}, "text/plain")


def configs(model: Model, request: Request) -> Response:
    """The configuration in force, without values that look like secrets."""
    known = {name: value for name, value in model.package.options.items() if name in KINDS}
    body = json.dumps({"run_mode": "standalone", "release": shown(known)}, default=str, sort_keys=True)
    return Response(body, media_type="application/json")


def measured(model: Model) -> str:
    """The figures of scripts that use monitor_rt_*. Workers count each bucket by itself; here they are added up."""
    buckets: dict[str, dict[float, float]] = defaultdict(dict)
    sums: dict[str, float] = {}
    # In the format of Prometheus, a bucket has the count of all buckets below it too.
    for series, value in model.metrics.script.items():
        if series.startswith(RESPONSE_TIME + "_bucket{"):
            labels, _, bound = series[len(RESPONSE_TIME) + 8 : -2].rpartition(',le="')
            buckets[labels][float(bound)] = value
        elif series.startswith(RESPONSE_TIME + "_sum{"):
            sums[series[len(RESPONSE_TIME) + 5 : -1]] = value
    if not buckets:
        return ""
    lines = heading(RESPONSE_TIME, "measured by the script", "histogram")
    for labels, counts in sorted(buckets.items()):
        below = 0.0
        for edge in BOUNDS:
            below += counts.get(edge, 0)
            le = "+Inf" if edge == float("inf") else f"{edge:g}"
            lines.append(f'{RESPONSE_TIME}_bucket{{{labels},le="{le}"}} {below:g}')
        lines.append(f"{RESPONSE_TIME}_sum{{{labels}}} {sums.get(labels, 0.0):.6f}")
        lines.append(f"{RESPONSE_TIME}_count{{{labels}}} {below:g}")
    return "\n".join(lines) + "\n"


BOUNDS = (
    0.0,
    *(float(f"{n * unit:g}") for unit in (0.01, 0.1, 1) for n in range(1, 10)),
    *(10.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    float("inf"),
)
"""The platform's buckets."""
