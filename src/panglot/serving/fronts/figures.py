"""The figures of one front of several: it tells them to other fronts, and adds the figures of all fronts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from panglot.engine.call import CallProgress
from panglot.fronts import summing
from panglot.fronts.board import BORROWED, LENT, LOAD, LOST_LINES, RESTARTS
from panglot.fronts.lending.call_lending import HOME
from panglot.fronts.member import Member
from panglot.metrics.counters import heading, lost_lines, wording
from panglot.web.front import Front
from panglot.web.measured import own_metrics
from panglot.web.models import Model
from panglot.web.pages.live import plain
from panglot.web.v2 import statistics

SAVE_EVERY = 1.0
LOOK_AGAIN = 0.05
METRICS, STATUS, TICK, REQUEST, SAID, PROGRESS, WORKERS, COUNTS, DESCRIPTION = (
    "metrics", "status", "tick", "request", "said", "progress", "workers", "counts", "description"
)  # fmt: skip
"""The questions of one front to another."""


class Figures:
    """The figures of a server with several fronts, in one of its fronts. An `OtherFronts`."""

    def __init__(self, member: Member, fronts: Sequence[Front]) -> None:
        self._member = member
        self._fronts = fronts
        """By listener."""
        self._inherited = member.board.saved.read(member.index)
        """The counters of the front that had this index before; empty if there was none."""
        self.described: Callable[[str, str], dict[str, Any] | None] = lambda name, version: None
        """What this front knows of a model whose workers it has; the server sets it."""
        member.siblings.answer = self._answer
        for front in fronts:
            front.others = self
            front.live.load.title, front.live.load.fronts = f"front {member.index}", member.count

    async def metrics(self, own: str, listener: int, model: str) -> str:
        """The figures of all fronts, added up; `own` are those of this one."""
        question = {"what": METRICS, "listener": listener, "model": model}
        others = await self._member.siblings.ask_all(question)
        texts = [self._with_inherited(own, listener, model), *others.values()]
        if model:
            return summing.metrics(texts)
        # The lines that the parent dropped, beside those that the fronts did.
        texts.append("\n".join(lost_lines(self._member.rows[0][LOST_LINES])))
        return summing.metrics(texts) + self._about_fronts(len(others) + 1)

    async def status(self, own: Mapping[str, Any], listener: int, is_tick: bool, model: str) -> dict[str, Any]:
        question = {"what": TICK if is_tick else STATUS, "listener": listener, "model": model}
        others = await self._member.siblings.ask_all(question)
        # A front that has just started has no sample yet.
        answers = {index: answer for index, answer in others.items() if not is_tick or answer["sample"]}
        known = {self._member.index: _as_json(own), **answers}
        return self._with_connections(summing.status(known))

    async def request(self, request_id: str, listener: int) -> dict[str, Any] | None:
        request: dict[str, Any] | None = await self._find(REQUEST, request_id, listener)
        return request

    async def said(
        self, own: Mapping[str, Any], request_id: str, began: float, ended: float, listener: int
    ) -> dict[str, Any]:
        question = {"what": SAID, "listener": listener, "id": request_id, "began": began, "ended": ended}
        others = await self._member.siblings.ask_all(question)
        return summing.said([own, *others.values()])

    async def progress(self, request_id: str, listener: int) -> CallProgress | None:
        progress = await self._find(PROGRESS, request_id, listener)
        return None if progress is None else CallProgress(*progress)

    async def _find(self, what: str, request_id: str, listener: int) -> Any:
        answers = await self._member.siblings.ask_all({"what": what, "listener": listener, "id": request_id})
        return next(iter(answers.values()), None)

    def _with_connections(self, status: dict[str, Any]) -> dict[str, Any]:
        rows = self._member.rows
        for entry in status["fronts"]:
            row = rows[entry["front"]]
            entry |= {"connections": row.connections, "busy": row[LOAD] / 1000}
            entry |= {"lent": row[LENT], "borrowed": row[BORROWED]}
        # The pid of the parent: signals for the server go there.
        return {**status, "pid": os.getppid()}

    def _with_inherited(self, own: str, listener: int, model: str) -> str:
        """The figures of this front, with the counters of the fronts that had its index before."""
        # Only the text of the first listener, for all models, is saved.
        is_saved = self._inherited and not listener and not model
        return summing.metrics([own, self._inherited]) if is_saved else own

    async def save(self) -> None:
        """Save the counters of this front once a second, until cancelled. A death loses the last second."""
        while True:
            await asyncio.sleep(SAVE_EVERY)
            text = self._with_inherited(own_metrics(self._fronts[0], ""), 0, "")
            self._member.board.saved.save(self._member.index, summing.counters(text))

    def _about_fronts(self, answering: int) -> str:
        states = {"answering": answering, "silent": self._member.count - answering}
        name = "panglot_fronts"
        lines = heading(name, "fronts of the server, by whether they tell their figures", "gauge")
        lines += [f"{name}{wording({'state': state})} {count}" for state, count in states.items()]
        rows = self._member.rows
        series = (
            ("panglot_front_connections", "connections by front", "gauge", [row.connections for row in rows]),
            ("panglot_front_busy_ratio", "share of its time that a front is at work", "gauge",
             [row[LOAD] / 1000 for row in rows]),
            ("panglot_calls_lent_total", "calls that a front gave to another to run", "counter",
             [row[LENT] for row in rows]),
            ("panglot_calls_borrowed_total", "calls that a front ran for another", "counter",
             [row[BORROWED] for row in rows]),
        )  # fmt: skip
        for name, about, kind, values in series:
            lines += heading(name, about, kind)
            lines += [f"{name}{wording({'front': str(index)})} {value:g}" for index, value in enumerate(values)]
        name = "panglot_front_restarts_total"
        lines += heading(name, "fronts that were started again, by the reason", "counter")
        lines.append(f"{name}{wording({'reason': 'died'})} {sum(row[RESTARTS] for row in rows)}")
        return "\n".join(lines) + "\n"

    async def description(self, name: str, version: str) -> dict[str, Any]:
        """The description of a model. Waits until the front that has its workers has loaded the model."""
        question = {"what": DESCRIPTION, "name": name, "version": version}
        while True:
            description = await self._member.siblings.ask(HOME, question)
            if description:
                return dict(description)
            await asyncio.sleep(LOOK_AGAIN)

    async def workers(self, model: Model) -> list[dict[str, Any]]:
        """The workers of a model in the other fronts."""
        question = {"what": WORKERS, "name": model.name, "version": model.version}
        others = await self._member.siblings.ask_all(question)
        return [worker for workers in others.values() for worker in workers]

    async def counts(self, model: Model) -> list[dict[str, Any]]:
        question = {"what": COUNTS, "name": model.name, "version": model.version}
        return list((await self._member.siblings.ask_all(question)).values())

    async def _answer(self, question: dict[str, Any]) -> Any:
        if question["what"] == WORKERS:
            model = self._fronts[0].models.get(question["name"], question["version"])
            return model.engine.workers() if model is not None else []
        if question["what"] == COUNTS:
            model = self._fronts[0].models.get(question["name"], question["version"])
            return statistics.counts(model) if model is not None else None
        if question["what"] == DESCRIPTION:
            return self.described(question["name"], question["version"])
        front = self._fronts[question["listener"]]
        if question["what"] == METRICS:
            own = own_metrics(front, question["model"])
            return self._with_inherited(own, question["listener"], question["model"])
        if question["what"] == REQUEST:
            return _as_json(front.live.request(question["id"]))
        if question["what"] == SAID:
            return front.live.said(question["id"], question["began"], question["ended"])
        if question["what"] == PROGRESS:
            return _as_json(front.progress.of(question["id"]))
        name = question["model"]
        return _as_json(front.live.tick(name) if question["what"] == TICK else front.live.snapshot(name))


def _as_json(value: Any) -> Any:
    """A value as other fronts receive it: samples are lists, keys are texts. So own figures can be added to theirs."""
    return orjson.loads(orjson.dumps(value, default=plain))
