"""Sends the measurements that scripts take with `monitor_rt_*` to the front, for /metrics."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Tuple

MOST_SERIES = 100
"""How many series of a histogram are reported: a script may make up new label values without end."""


class Measured:
    """Reports what has been observed since its last report."""

    def __init__(self, registry: Any) -> None:
        self.registry = registry
        self._reported: Dict[str, Tuple[List[int], float]] = {}

    def deltas(self) -> Dict[str, float]:
        """By series: `NAME_bucket{..., le="..."}` counts this bucket's observations alone, `NAME_sum` the seconds."""
        series: Dict[str, float] = {}
        for histogram in self.registry.histograms:
            for values, child in list(histogram.children.items())[:MOST_SERIES]:
                labels = ",".join('%s="%s"' % (name, _plain(text)) for name, text in zip(histogram.labelnames, values))
                self._add(series, histogram.name, labels, child)
        return series

    def _add(self, series: Dict[str, float], name: str, labels: str, child: Any) -> None:
        counts, total = self._reported.get(name + labels, ([0] * len(child.counts), 0.0))
        if child.counts == counts:
            return
        for bound, before, now in zip(child.bounds, counts, child.counts):
            if now != before:
                le = "+Inf" if bound == math.inf else "%g" % bound
                series['%s_bucket{%s,le="%s"}' % (name, labels, le)] = now - before
        series["%s_sum{%s}" % (name, labels)] = child.total - total
        # A copy: the script goes on counting in its list.
        self._reported[name + labels] = (list(child.counts), child.total)


def _plain(value: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in value[:64])
