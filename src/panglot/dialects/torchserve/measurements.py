"""Figures that handlers report by `context.metrics`, for /metrics: series with the script's own names."""

from __future__ import annotations

from typing import Any

from panglot.metrics.counters import heading

MARK = "torchserve:"
"""The beginning of the names that the worker gives these series: `torchserve:KIND:UNIT:NAME{labels}`."""


def metrics(model: Any) -> str:
    """The series of the script: counters added up over the workers, gauges as the last worker has set them."""
    families: dict[str, list[str]] = {}
    for series, value in sorted(model.metrics.script.items()):
        if not series.startswith(MARK):
            continue
        kind, _, rest = series[len(MARK) :].partition(":")
        name = rest.partition("{")[0]
        lines = families.setdefault(name, heading(name, "measured by the handler", kind))
        lines.append(f"{rest} {value:g}")
    return "".join(f"{line}\n" for lines in families.values() for line in lines)
