"""What went wrong, grouped: script failures by what they say, answers by status, and limits that refused."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from panglot.engine.interface import Trouble
from panglot.metrics.counters import Metrics
from panglot.terminal.text import visible

MOST = 100
"""How many groups are remembered; a new one replaces the one that was not seen for longest."""


@dataclass
class Group:
    """Things that went wrong in the same way."""

    kind: str
    what: str
    count: int = 0
    last: float = 0.0
    request_id: str = ""
    traceback: str = ""

    def shown(self, dev: bool) -> dict[str, Any]:
        shown = {"kind": self.kind, "what": self.what, "count": self.count, "last": self.last}
        more = {"traceback": visible(self.traceback, "\n\t")} if dev and self.traceback else {}
        return {**shown, "request_id": self.request_id, **more}


class Failures:
    """Keeps the groups up to date. Called about once a second."""

    def __init__(self, dev: bool) -> None:
        self._dev = dev
        self.groups: dict[tuple[str, str], Group] = {}
        self.deaths: list[Trouble] = []
        """The last obituaries of workers, oldest first."""
        self._seen: dict[str, Trouble] = {}

    def update(self, whose: str, metrics: Metrics, troubles: Iterable[Trouble], routes: frozenset[str]) -> None:
        """Add what a model has counted and reported since the last time; `whose` goes before its messages."""
        for trouble in self._fresh(whose, list(troubles)):
            if not trouble.request_id:
                self.deaths = [*self.deaths, trouble][-20:]
            group = self._group("script" if trouble.request_id else "worker", whose + self._words(trouble))
            group.count += 1
            group.last, group.request_id, group.traceback = trouble.when, trouble.request_id, trouble.traceback
        for kind, what, count in _counters(metrics, routes):
            group = self._group(kind, whose + what)
            if count != group.count:
                group.count, group.last = count, time.time()

    def _words(self, trouble: Trouble) -> str:
        """What a group is called: what clients get, or in development the exception itself."""
        last = trouble.traceback.strip().rpartition("\n")[2] if self._dev and trouble.request_id else ""
        return visible(last or trouble.message.partition("\n")[0])

    def shown(self) -> list[dict[str, Any]]:
        """All groups, those of scripts first, then the latest first."""
        order = {"worker": 0, "script": 1, "answers": 2, "limit": 3}
        groups = sorted(self.groups.values(), key=lambda group: (order[group.kind], -group.last))
        return [group.shown(self._dev) for group in groups]

    def _fresh(self, whose: str, troubles: list[Trouble]) -> list[Trouble]:
        """The new ones. An engine remembers the last ones, oldest first."""
        last = self._seen.get(whose)
        known = next((place for place, trouble in enumerate(troubles) if trouble is last), -1)
        if troubles:
            self._seen[whose] = troubles[-1]
        return troubles[known + 1 :]

    def _group(self, kind: str, what: str) -> Group:
        key = kind, what
        if key not in self.groups:
            if len(self.groups) >= MOST:
                del self.groups[min(self.groups, key=lambda known: self.groups[known].last)]
            self.groups[key] = Group(kind, what)
        return self.groups[key]


def _counters(metrics: Metrics, routes: frozenset[str]) -> Iterator[tuple[str, str, int]]:
    """Kind, words and count of what counters tell."""
    for (route, status), count in metrics.requests.items():
        if status >= 400 and route in routes:
            phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
            yield "answers", f"{status} {phrase} · {route}".replace("  ", " "), count
    for limit, count in metrics.refused.items():
        yield "limit", f"refused: {limit}", count
    for reason, count in metrics.dropped.items():
        yield "limit", f"dropped: {reason}", count
