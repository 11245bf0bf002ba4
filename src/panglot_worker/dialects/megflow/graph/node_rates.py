"""How fast messages pass through each node, and where they pile up."""

from __future__ import annotations

import re
import time
from typing import Any, Dict

INSTANCE = re.compile(r"\.\d+(?=/|$)")
"""The number of a template's instance, in the name of a node inside of it."""
BLOCKED = 0.9
"""How full an input must be to call its node blocked."""


class NodeRates:
    """Counts the messages of each node; rates are means since the last report."""

    def __init__(self) -> None:
        self._counts: Dict[str, Dict[str, int]] = {}
        self._at = time.monotonic()

    def take(self, runtime: Any) -> Dict[str, Any]:
        """The figures of all nodes; the instances of a template count as one node."""
        now = time.monotonic()
        seconds, self._at = max(now - self._at, 1e-3), now
        before, self._counts = self._counts, {}
        nodes: Dict[str, Dict[str, Any]] = {}
        for figures in runtime.figures():
            name = INSTANCE.sub("", figures["name"])
            node = nodes.setdefault(name, {
                "name": name, "type": figures["type"], "instances": 0, "failures": 0, "inputs": {}, "outputs": {},
                "blocked": False,
            })  # fmt: skip
            node["instances"] += 1
            node["failures"] += figures["failures"]
            for port, (length, cap, count) in figures["inputs"].items():
                entry = node["inputs"].setdefault(port, {"queued": 0, "cap": cap, "count": 0, "rate": 0.0})
                entry["queued"] += length
                entry["count"] += count
                node["blocked"] = node["blocked"] or length >= BLOCKED * cap
            for port, count in figures["outputs"].items():
                node["outputs"].setdefault(port, {"count": 0, "rate": 0.0})["count"] += count
        for name, node in nodes.items():
            self._rate(name, node, before.get(name, {}), seconds)
        return {"nodes": list(nodes.values())}

    def _rate(self, name: str, node: Dict[str, Any], before: Dict[str, int], seconds: float) -> None:
        counts = self._counts.setdefault(name, {})
        for direction in ("inputs", "outputs"):
            for port, entry in node[direction].items():
                key = direction + port
                counts[key] = entry["count"]
                # The count falls when an instance of a template ends: its nodes are no longer in the sum.
                entry["rate"] = round(max(0, entry["count"] - before.get(key, 0)) / seconds, 1)
