"""The HTTP contract of MegFlow's VideoServer, with what is added to it: events, pictures, figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from franca.metrics import wording
from franca.web.native.base import InferRoute

TEXT, JSON = "text/plain", "application/json"


def routes(node: str) -> tuple[InferRoute, ...]:
    """All of them reach the node; those of a stream name it by its number."""
    found = (
        ("/start/", "url", "POST", TEXT, None),
        ("/stop/", "id", "POST", TEXT, None),
        ("/list", "", "GET", JSON, {"type": "array", "items": {"type": "object"}}),
        ("/get_msgs/", "id", "GET", JSON, {"type": "array", "items": {"type": "string"}}),
        ("/events/", "id", "GET", "text/event-stream", None),
        ("/preview/", "picture", "GET", "image/jpeg", None),
    )
    return tuple(
        InferRoute(
            path, f"{path}{{{name}}}" if name else path, prefix=bool(name), target=node, parameter=name or "name",
            gives=gives, response=schema, method=method, bare=True, endless=path in ("/events/", "/preview/"),
        )
        for path, name, method, gives, schema in found
    )  # fmt: skip


SERIES = (
    ("franca_stream_frames_total", "frames of a stream, decoded and given to its graph", "counter"),
    ("franca_stream_dropped_total", "frames and results of a stream that had to go", "counter"),
    ("franca_stream_results_total", "results of a stream", "counter"),
    ("franca_stream_reconnects_total", "times a live stream was opened again", "counter"),
    ("franca_stream_lag_seconds", "from a frame's arrival to its result, for the last one", "gauge"),
)


def metrics(streams: Iterator[tuple[int, dict[str, Any]]]) -> str:
    """Series of the streams that run, from what workers tell of them."""
    lines: dict[str, list[str]] = {name: [] for name, _, _ in SERIES}

    def add(name: str, value: float, labels: dict[str, str]) -> None:
        lines[name].append(f"{name}{wording(labels)} {value:g}")

    for worker, one in streams:
        labels = {"worker": str(worker), "node": one["node"], "stream": str(one["id"])}
        for stage in ("decoded", "analysed"):
            add("franca_stream_frames_total", one[stage], {**labels, "stage": stage})
        add("franca_stream_dropped_total", one["dropped"], {**labels, "what": "frames"})
        add("franca_stream_dropped_total", one["results_dropped"], {**labels, "what": "results"})
        add("franca_stream_results_total", one["results"], labels)
        add("franca_stream_reconnects_total", one["reconnects"], labels)
        add("franca_stream_lag_seconds", one["lag"], labels)
    return "".join(
        f"# HELP {name} {about}\n# TYPE {name} {kind}\n" + "".join(line + "\n" for line in lines[name])
        for name, about, kind in SERIES
    )
