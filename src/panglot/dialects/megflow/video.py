"""The HTTP contract of MegFlow's VideoServer, and Panglot's additions to it: events, pictures, figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from panglot.metrics.counters import heading, wording
from panglot.web.contract import ADMIN, INFER, InferRoute

TEXT, JSON = "text/plain", "application/json"


def routes(node: str) -> tuple[InferRoute, ...]:
    """The routes of a VideoServer. All of them lead to its node; a stream has its number in the path."""
    answer = (
        ("/start/{url}", "POST", TEXT, None),
        ("/stop/{id}", "POST", TEXT, None),
        ("/list", "GET", JSON, {"type": "array", "items": {"type": "object"}}),
        ("/get_msgs/{id}", "GET", JSON, {"type": "array", "items": {"type": "string"}}),
        ("/events/{id}", "GET", "text/event-stream", None),
        ("/preview/{picture}", "GET", "image/jpeg", None),
    )
    upload = InferRoute(
        "/analyze_video", "/analyze_video", target=node, takes=("video/*", "application/octet-stream"),
        gives="text/event-stream", spooled=True,
    )  # fmt: skip
    streams = tuple(
        InferRoute(
            path, path, target=node, gives=gives, response=schema, methods=(method,), without_body=True,
            endless=path.startswith(("/events/", "/preview/")), access=ADMIN if "/preview/" in path else INFER,
        )
        for path, method, gives, schema in answer
    )  # fmt: skip
    return (*streams, upload)


SERIES = (
    ("panglot_stream_frames_total", "frames of a stream: decoded, and those its graph is done with", "counter"),
    ("panglot_stream_dropped_total", "frames and results of a stream that had to go", "counter"),
    ("panglot_stream_lost_total", "frames of a stream that got no answer because a node failed", "counter"),
    ("panglot_stream_results_total", "results of a stream", "counter"),
    ("panglot_stream_reconnects_total", "times a live stream was opened again", "counter"),
    ("panglot_stream_frames_per_second", "the same as frames_total, of late", "gauge"),
    ("panglot_stream_lag_seconds", "from a frame's arrival to its result, for the last one", "gauge"),
)


def metrics(streams: Iterator[tuple[int, dict[str, Any]]]) -> str:
    """Series of the running streams, from the reports of workers."""
    lines: dict[str, list[str]] = {name: [] for name, _, _ in SERIES}

    def add(name: str, value: float, labels: dict[str, str]) -> None:
        lines[name].append(f"{name}{wording(labels)} {value:g}")

    for worker, stream in streams:
        labels = {"worker": str(worker), "node": stream["node"], "stream": str(stream["id"])}
        for stage in ("decoded", "analysed"):
            add("panglot_stream_frames_total", stream[stage], {**labels, "stage": stage})
            add("panglot_stream_frames_per_second", stream[f"{stage}_fps"], {**labels, "stage": stage})
        add("panglot_stream_dropped_total", stream["dropped"], {**labels, "what": "frames"})
        add("panglot_stream_dropped_total", stream["results_dropped"], {**labels, "what": "results"})
        add("panglot_stream_lost_total", stream["lost"], labels)
        add("panglot_stream_results_total", stream["results"], labels)
        add("panglot_stream_reconnects_total", stream["reconnects"], labels)
        add("panglot_stream_lag_seconds", stream["lag"], labels)
    text = [line for name, about, kind in SERIES for line in (*heading(name, about, kind), *lines[name])]
    return "\n".join(text) + "\n"


def _preview(number: int) -> str:
    return f'<td><a href="preview/{number}.mjpeg"><img src="preview/{number}.jpg" alt="" height="45"></a></td>'
