"""Failures in groups: of scripts and workers by their words, answers by status, refusals by limit."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from panglot.engine.interface import Trouble
from panglot.metrics.counters import Metrics
from panglot.terminal.text import visible

MOST = 100
"""How many groups are remembered; a new one replaces the group that was seen longest ago."""
PATIENCE = 3
"""How many times the answer to a request that failed is looked for among the recent ones."""
NO_FAILURE = frozenset({"disconnected"})
"""Reasons of dropped requests that are no failure: their clients stopped them."""
DROPPED_AS: Mapping[str, tuple[int, ...]] = MappingProxyType({"deadline": (504, 408)})
USUALLY_DROPPED_AS = (503, 429, 422)
"""The statuses of answers to requests that are dropped for a reason; a platform may have others."""
NAMED_IN_OBITUARY = 8
"""How many of the requests that a worker held its obituary names."""
RouteStatus = tuple[str, int]
"""A route, and the status of an answer."""


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
    """The owner of failures: a model, with its version where it has several; without a name, the server."""

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
        self._unexplained: dict[Owner, dict[str, int]] = {}
        """Requests in troubles whose answers have not been seen yet, and how often they were looked for."""
        self._explained: Counter[tuple[Owner, str, int]] = Counter()
        """Answers that stand in a group of scripts or workers already: every failure is shown once."""
        self._done: deque[str] = deque(maxlen=500)
        """Requests whose answers are explained; two workers may have died of one of them."""

    def update(
        self, owner: Owner, metrics: Metrics, troubles: Iterable[Trouble], routes: frozenset[str],
        answered: Mapping[str, RouteStatus],
    ) -> None:  # fmt: skip
        """Add what a model has counted and reported since the last time; `answered` has the recent requests by id."""
        waiting = self._unexplained.setdefault(owner, {})
        whose = f"version {owner.version}: " if owner.version else ""
        for trouble in self._fresh(owner, list(troubles)):
            if not trouble.request_id:
                self.deaths = [*self.deaths, (owner, trouble)][-20:]
            kind = "script" if trouble.request_id else "worker"
            group = self._group(kind, owner.model, whose + _words(trouble, owner.dev))
            group.count += 1
            group.last, group.request_id = trouble.when, trouble.request_id
            group.traceback = trouble.traceback if owner.dev else ""
            about = {trouble.request_id, *trouble.held} - {"", *self._done}
            waiting |= dict.fromkeys(about, 0)
        self._explain(owner, metrics, waiting, answered)
        for kind, what, count in self._counters(owner, metrics, routes):
            # A later trouble may explain an answer, which then leaves this group.
            if count <= 0:
                self.groups.pop((kind, owner.model, whose + what), None)
                continue
            group = self._group(kind, owner.model, whose + what)
            if count != group.count:
                group.count, group.last = count, time.time()

    def _explain(
        self, owner: Owner, metrics: Metrics, waiting: dict[str, int], answered: Mapping[str, RouteStatus]
    ) -> None:
        """Note which answers the troubles are about. Of many requests in a second some are no longer recent."""
        for request_id, turns in list(waiting.items()):
            answer = answered.get(request_id)
            if answer is None and turns < PATIENCE:
                waiting[request_id] = turns + 1
                continue
            del waiting[request_id]
            self._done.append(request_id)
            answer = answer or self._likely(owner, metrics)
            if answer is not None and answer[1] >= 400:
                self._explained[owner, *answer] += 1

    def _likely(self, owner: Owner, metrics: Metrics) -> RouteStatus | None:
        """Where a script most likely failed: the route with the most answers of 500 that nothing explains."""
        left = {
            (route, status): count - self._explained[owner, route, status]
            for (route, status), count in metrics.requests.items()
            if status == HTTPStatus.INTERNAL_SERVER_ERROR
        }
        best = max(left, key=lambda answer: left[answer], default=None)
        return best if best is not None and left[best] > 0 else None

    def shown(self, model: str = "") -> list[dict[str, Any]]:
        """The groups of a model, or all; those of scripts first, then the latest first."""
        order = {"worker": 0, "script": 1, "answers": 2, "limit": 3}
        wanted = [group for group in self.groups.values() if model in ("", group.model)]
        groups = sorted(wanted, key=lambda group: (order[group.kind], -group.last))
        return [group.shown() for group in groups]

    def _fresh(self, owner: Owner, troubles: list[Trouble]) -> list[Trouble]:
        """The new ones. An engine remembers the last ones, oldest first."""
        last = self._seen.get(owner)
        # By identity: two troubles may be equal.
        known = next((index for index, trouble in enumerate(troubles) if trouble is last), -1)
        if troubles:
            self._seen[owner] = troubles[-1]
        return troubles[known + 1 :]

    def _counters(self, owner: Owner, metrics: Metrics, routes: frozenset[str]) -> Iterator[tuple[str, str, int]]:
        """Kind, words and count of what counters tell and no trouble explains."""
        left = {
            (route, status): count - self._explained[owner, route, status]
            for (route, status), count in metrics.requests.items()
            if status >= 400 and route in routes
        }
        for reason, count in metrics.dropped.items():
            if reason not in NO_FAILURE:
                _take_out(left, count, DROPPED_AS.get(reason, USUALLY_DROPPED_AS))
                yield "limit", f"dropped: {reason}", count
        for (route, status), count in left.items():
            phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
            yield "answers", f"{status} {phrase} · {route}".replace("  ", " "), count
        for limit, count in metrics.refused.items():
            yield "limit", f"refused: {limit}", count

    def _group(self, kind: str, model: str, what: str) -> Group:
        key = kind, model, what
        if key not in self.groups:
            if len(self.groups) >= MOST:
                del self.groups[min(self.groups, key=lambda known: self.groups[known].last)]
            self.groups[key] = Group(kind, model, what)
        return self.groups[key]


def _take_out(left: dict[RouteStatus, int], count: int, statuses: Sequence[int]) -> None:
    """Take the answers to dropped requests out of those that nothing explains, first those of the likely statuses."""
    order = {status: index for index, status in enumerate(statuses)}
    likely = sorted(left, key=lambda answer: (order.get(answer[1], len(order)), -left[answer]))
    for answer in likely:
        taken = max(0, min(count, left[answer]))
        left[answer] -= taken
        count -= taken


def _words(trouble: Trouble, dev: bool) -> str:
    """The title of a group: the message that clients get, or in development the exception itself.

    Deaths have one title, whichever requests the worker held.
    """
    last = trouble.traceback.strip().rpartition("\n")[2] if dev and trouble.request_id else ""
    held = ", ".join(trouble.held[:NAMED_IN_OBITUARY])
    message = trouble.message.partition("\n")[0]
    return visible(last or (message.removesuffix(f": {held}") if held else message))
