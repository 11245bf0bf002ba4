"""What went wrong, grouped: script failures by what they say, answers by status, and limits that refused."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from panglot.engine.interface import Trouble
from panglot.metrics.counters import Metrics
from panglot.terminal.text import visible

MOST = 100
"""How many groups are remembered; a new one replaces the one that was not seen for longest."""


@dataclass
class Group:
    """Things that went wrong in the same way."""

    kind: str
    model: str
    """The name of the model it went wrong in; empty: it is about none."""
    what: str
    count: int = 0
    last: float = 0.0
    request_id: str = ""
    traceback: str = ""

    def shown(self) -> dict[str, Any]:
        what = {"kind": self.kind, "model": visible(self.model), "what": self.what}
        shown = {**what, "count": self.count, "last": self.last}
        more = {"traceback": visible(self.traceback, "\n\t")} if self.traceback else {}
        return {**shown, "request_id": self.request_id, **more}


class Owner(NamedTuple):
    """What failures are of: a model, and its version where it has several; nothing: they are the server's."""

    model: str = ""
    version: str = ""
    dev: bool = False
    """Whether the page may show what its script raised."""


class Failures:
    """Keeps the groups up to date. Called about once a second."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.deaths: list[tuple[Owner, Trouble]] = []
        """The last obituaries of workers, oldest first."""
        self._seen: dict[Owner, Trouble] = {}

    def update(self, owner: Owner, metrics: Metrics, troubles: Iterable[Trouble], routes: frozenset[str]) -> None:
        """Add what a model has counted and reported since the last time."""
        whose = f"version {owner.version}: " if owner.version else ""
        for trouble in self._fresh(owner, list(troubles)):
            if not trouble.request_id:
                self.deaths = [*self.deaths, (owner, trouble)][-20:]
            kind = "script" if trouble.request_id else "worker"
            group = self._group(kind, owner.model, whose + _words(trouble, owner.dev))
            group.count += 1
            group.last, group.request_id = trouble.when, trouble.request_id
            group.traceback = trouble.traceback if owner.dev else ""
        for kind, what, count in _counters(metrics, routes):
            group = self._group(kind, owner.model, whose + what)
            if count != group.count:
                group.count, group.last = count, time.time()

    def shown(self, model: str = "") -> list[dict[str, Any]]:
        """The groups of a model, or all; those of scripts first, then the latest first."""
        order = {"worker": 0, "script": 1, "answers": 2, "limit": 3}
        wanted = [group for group in self.groups.values() if model in ("", group.model)]
        groups = sorted(wanted, key=lambda group: (order[group.kind], -group.last))
        return [group.shown() for group in groups]

    def _fresh(self, owner: Owner, troubles: list[Trouble]) -> list[Trouble]:
        """The new ones. An engine remembers the last ones, oldest first."""
        last = self._seen.get(owner)
        known = next((place for place, trouble in enumerate(troubles) if trouble is last), -1)
        if troubles:
            self._seen[owner] = troubles[-1]
        return troubles[known + 1 :]

    def _group(self, kind: str, model: str, what: str) -> Group:
        key = kind, model, what
        if key not in self.groups:
            if len(self.groups) >= MOST:
                del self.groups[min(self.groups, key=lambda known: self.groups[known].last)]
            self.groups[key] = Group(kind, model, what)
        return self.groups[key]


def _words(trouble: Trouble, dev: bool) -> str:
    """What a group is called: what clients get, or in development the exception itself."""
    last = trouble.traceback.strip().rpartition("\n")[2] if dev and trouble.request_id else ""
    return visible(last or trouble.message.partition("\n")[0])


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
