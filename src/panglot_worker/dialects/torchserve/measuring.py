"""What handlers measure with `context.metrics`, sent to the front for /metrics."""

from __future__ import annotations

import re
from typing import Dict

from panglot_worker.compat.model_metrics import Measured, MetricTypes

MOST_SERIES = 200
"""Further ones are dropped: the script chooses names and dimensions, and might make up new ones for ever."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_:]")


class Measurements:
    """Adds up what was measured since it was last taken.

    A counter is a counter. Gauges and histograms are told as a sum and a count: several workers measure them, and
    their front adds up what they send.
    """

    def __init__(self) -> None:
        self._deltas: Dict[str, float] = {}
        self._known: Dict[str, None] = {}

    def add(self, measured: Measured) -> None:
        """Note a value under the script's own name, with its dimensions as labels."""
        labels = ",".join('%s="%s"' % (_name(key), _plain(text)) for key, text in measured.labels.items())
        name = _name(measured.name)
        if measured.kind is MetricTypes.COUNTER:
            self._add("counter:%s{%s}" % (name, labels), measured.value)
        else:
            self._add("untyped:%s_sum{%s}" % (name, labels), measured.value)
            self._add("untyped:%s_count{%s}" % (name, labels), 1)

    def _add(self, series: str, value: float) -> None:
        series = "torchserve:" + series
        if series not in self._known:
            if len(self._known) >= MOST_SERIES:
                return
            self._known[series] = None
        self._deltas[series] = self._deltas.get(series, 0.0) + value

    def taken(self) -> Dict[str, float]:
        deltas, self._deltas = self._deltas, {}
        return deltas


def _name(text: str) -> str:
    name = NOT_IN_NAMES.sub("_", text[:64])
    return name if name[:1].isalpha() or name[:1] == "_" else "_" + name


def _plain(value: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in value[:64])
