"""Two sides, input by input and stage by stage: the first stage that differs is the one to look at."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from panglot import dialects
from panglot.errors import StartError
from panglot.tools import arrays
from panglot.tools.check.compare import Tolerance, Verdict, compare
from panglot.tools.check.sides import Answer, Side
from panglot.tools.run.inputs import Input, UnreadableInput
from panglot.tools.stages import ORDER, Opaque, ordered

NAMES = {"decode": "decoded input", "inference": "raw output"}
"""The names of stages for readers, where these are different."""
UNSEEN = "only the final answers were compared: the stages of one side cannot be seen"


@dataclass(frozen=True)
class Stage:
    """One stage on both sides. Without verdicts it was not compared, and `note` says why."""

    name: str
    verdicts: tuple[Verdict, ...] = ()
    note: str = ""

    @property
    def differs(self) -> bool:
        return any(verdict.differs for verdict in self.verdicts)

    def worst(self) -> Verdict:
        """The verdict to show first: the one with the largest difference."""
        return max((entry for entry in self.verdicts if entry.differs), key=lambda entry: entry.gap)


@dataclass(frozen=True)
class Compared:
    """One input on both sides. `problem` says why nothing could be compared."""

    name: str
    stages: tuple[Stage, ...] = field(default=())
    problem: str = ""

    @property
    def first(self) -> str:
        """The first stage that differs; empty when none does."""
        return next((stage.name for stage in self.stages if stage.differs), "")


async def check(
    left: Side, right: Side, inputs: Sequence[Input], tolerance: Tolerance, report: Callable[[Compared], None]
) -> None:
    """Compare both sides on every input and report each outcome."""
    for entry in inputs:
        if isinstance(entry, UnreadableInput):
            report(Compared(entry.name, problem=entry.problem))
            continue
        try:
            answers = [await side.answer(entry) for side in (left, right)]
        except (OSError, StartError) as error:
            report(Compared(entry.name, problem=str(error)))
            continue
        report(_compared(entry.name, left, right, answers, tolerance))


def _compared(name: str, left: Side, right: Side, answers: list[Answer], tolerance: Tolerance) -> Compared:
    keys = compared_keys(left.dialect) or compared_keys(right.dialect)
    mine, theirs = (_of_keys(answer, keys) for answer in answers)
    sides = zip((left, right), answers, strict=True)
    failed = [f"{side.name}: {answer.error}" for side, answer in sides if answer.error]
    if failed:
        return Compared(name, problem="; ".join(failed))
    if not mine.stages or not theirs.stages:
        hidden = tuple(Stage(stage, note=UNSEEN) for stage in ORDER[:-1])
        return Compared(name, (*hidden, Stage("final", _finals(mine, theirs, tolerance))))
    names = ordered(mine.stages, theirs.stages)
    stages = tuple(_stage(stage, mine, theirs, left.dialect == right.dialect, tolerance) for stage in names)
    return Compared(name, stages)


def compared_keys(dialect: str) -> tuple[str, ...]:
    """The keys of an answer that depend on the script alone; empty: all keys are compared."""
    known = dialects.known().get(dialect)
    return getattr(known.load("request"), "COMPARED", ()) if known is not None and known.has("request") else ()


def _of_keys(answer: Answer, keys: tuple[str, ...]) -> Answer:
    """The answer with these keys alone. An answer without any of them, such as a refusal, stays whole."""

    def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
        few = {key: value for key, value in values.items() if re.split(r"[.\[]", key, maxsplit=1)[0] in keys}
        return few or dict(values)

    stages = {name: chosen(values) if name == "final" else dict(values) for name, values in answer.stages.items()}
    return dataclasses.replace(answer, final=chosen(answer.final), stages=stages)


def _finals(mine: Answer, theirs: Answer, tolerance: Tolerance) -> tuple[Verdict, ...]:
    """The verdicts on the final answers: as arrays where both sides have them, else as JSON, without types of numbers.

    Against a file of arrays, a value is compared in the form in which `panglot run --save` writes it.
    """
    values = [answer.final if answer.saved else answer.stages.get("final", {}) for answer in (mine, theirs)]
    untyped = not all(values) or any(isinstance(leaf, Opaque) for leaves in values for leaf in leaves.values())
    if untyped:
        values = [mine.final, theirs.final]
        tolerance = dataclasses.replace(tolerance, types=False)
    if mine.saved != theirs.saved:
        values = [
            value if answer.saved else _as_saved(value) for value, answer in zip(values, (mine, theirs), strict=True)
        ]
    return tuple(compare(values[0], values[1], tolerance))


def _as_saved(values: Mapping[str, Any]) -> dict[str, Any]:
    made = {key or "output": (arrays.as_saved(value), value) for key, value in values.items()}
    return {key: value if array is None else array for key, (array, value) in made.items()}


def _stage(name: str, mine: Answer, theirs: Answer, same_dialect: bool, tolerance: Tolerance) -> Stage:
    if name not in mine.stages and name not in theirs.stages:
        return Stage(name, note="neither side has this stage")
    if name not in mine.stages or name not in theirs.stages:
        return Stage(name, note=f"only the {'left' if name in mine.stages else 'right'} side has this stage")
    if name == "final":
        return Stage(name, _finals(mine, theirs, tolerance))
    if name == "decode" and not same_dialect:
        return Stage(name, note="the dialects hand it to scripts in different forms")
    return Stage(name, tuple(compare(mine.stages[name], theirs.stages[name], tolerance)))
