"""Adds the figures of several fronts to the figures of one server. It asks no front: all figures are given."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

STATES = ("ready", "asleep", "waking", "loading", "back-off", "draining")
"""The states of a front, the best first: the server is as badly off as the worst of them."""
SUMS = ("answered", "refused", "failed", "waiting", "in_progress", "held", "watching")
KEY_SUMS = ("open", "admitted", "forbidden", "rate_refused", "at_once_refused")
MOST_RECENT = 50
OF_SERVER = ("panglot_model_state", "panglot_memory_need_bytes")
"""Series in which every front tells of the whole server: their values are equal, and are not added."""

Rows = Sequence[Mapping[str, Any]]


def metrics(texts: Iterable[str]) -> str:
    """Several texts of the Prometheus form as one, in which the values of a series are added."""
    families: dict[str, dict[str, float | None]] = {}
    for text in texts:
        family: dict[str, float | None] = families.setdefault("", {})
        for line in text.splitlines():
            if line.startswith("#"):
                # In every text the lines about a series come before its values.
                family = families.setdefault(line.split(" ", 3)[2], {})
                family.setdefault(line, None)
                continue
            series, _, value = line.rpartition(" ")
            add = max if series.partition("{")[0] in OF_SERVER else operator.add
            family[series] = add(family.get(series) or 0.0, float(value))
    lines = ((series, value) for family in families.values() for series, value in family.items())
    return "\n".join(series if value is None else f"{series} {value:.16g}" for series, value in lines) + "\n"


def counters(text: str) -> str:
    """The counters and histograms of a Prometheus text, with which the successor of a front goes on."""
    lines: list[str] = []
    grows, about = False, ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            grows, about = False, line
        elif line.startswith("# TYPE "):
            grows = line.rpartition(" ")[2] in ("counter", "histogram")
            lines += [entry for entry in (about, line) if entry] if grows else []
            about = ""
        elif grows:
            lines.append(line)
    return "\n".join(lines) + "\n" if lines else ""


def status(by_front: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of the status page, made of the figures of each front, by its index.

    Sums where figures can be added. Everything else, such as the description of the models, comes from the first front
    that is given.
    """
    fronts = list(by_front.values())
    first = fronts[0]
    summed: dict[str, Any] = {
        **first,
        **{name: sum(front[name] for front in fronts) for name in SUMS},
        "state": max((front["state"] for front in fronts), key=STATES.index),
        "uptime": max(front["uptime"] for front in fronts),
        "front": _cost([front["front"] for front in fronts]),
        "fronts": [_front(index, by_front[index]) for index in sorted(by_front)],
        "advice": next(filter(None, (front.get("advice") for front in fronts)), ""),
        "workers": [{**worker, "front": index} for index in sorted(by_front) for worker in by_front[index]["workers"]],
        "pools": _pools([pool for front in fronts for pool in front["pools"]]),
        "batches": sorted(_added((size, count) for front in fronts for size, count in front["batches"]).items()),
        "restarts": _added(entry for front in fronts for entry in front["restarts"].items()),
        "deaths": _latest([death for front in fronts for death in front["deaths"]]),
        "errors": _errors([error for front in fronts for error in front["errors"]]),
        "recent": _latest([request for front in fronts for request in front["recent"]])[::-1],
    }
    summed["workers"].sort(key=lambda worker: (worker["model"], worker["pool"], worker["index"]))
    if "keys" in first:
        summed["keys"] = _keys([front.get("keys", ()) for front in fronts])
    if "history" in first:
        summed["history"] = _history([front["history"] for front in fronts])
    if "sample" in first:
        summed["sample"] = _sample([front["sample"] for front in fronts])
    return summed


def said(of_fronts: Rows) -> dict[str, Any]:
    """The log lines of a request in the order of their time, and its error, which only one front has."""
    log = sorted((line for front in of_fronts for line in front["log"]), key=lambda line: float(line["when"]))
    return {**{name: value for front in of_fronts for name, value in front.items()}, "log": log}


def _front(index: int, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one front."""
    latest = shown.get("sample") or (shown.get("history") or [[0.0] * 12])[-1]
    return {"front": index, **shown["front"], "requests": round(sum(latest[1:4]), 2)}


def _cost(costs: Rows) -> dict[str, Any]:
    return {**costs[0], **{name: sum(cost[name] for cost in costs) for name in ("cpu", "memory")}}


def _keys(of_fronts: Sequence[Rows]) -> list[dict[str, Any]]:
    """The keys of the first front, with the sums of the counts of all fronts."""
    sums: dict[str, dict[str, Any]] = {key["name"]: dict(key) for key in of_fronts[0]}
    for key in (key for keys in of_fronts[1:] for key in keys if key["name"] in sums):
        for name in KEY_SUMS:
            sums[key["name"]][name] += key[name]
    return list(sums.values())


def _added(entries: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    sums: dict[Any, int] = {}
    for name, count in entries:
        sums[name] = sums.get(name, 0) + count
    return sums


def _errors(errors: Rows) -> list[dict[str, Any]]:
    """Errors. An error that several fronts have had is there once, with the details of its last time."""
    sums: dict[tuple[str, str, str], dict[str, Any]] = {}
    for error in errors:
        key = error["kind"], error["model"], error["what"]
        known = sums.get(key, {"count": 0, "last": 0.0})
        newest = max(error, known, key=lambda row: float(row["last"]))
        sums[key] = {**newest, "count": known["count"] + error["count"]}
    return list(sums.values())


def _latest(rows: Rows) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: -float(row["when"]))[:MOST_RECENT]


def _pools(pools: Rows) -> list[dict[str, Any]]:
    """The pools of a server. The workers that the fronts have of one pool are added."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for pool in pools:
        known = sums.get((pool["model"], pool["pool"]))
        if known is None:
            sums[pool["model"], pool["pool"]] = dict(pool)
            continue
        known["wanted"] += pool["wanted"]
        known["ready"] += pool["ready"]
        known["workers"] = _count(known["workers"], pool["workers"])
        if "changes" in pool:
            known["changes"] = [*known.get("changes", []), *pool["changes"]]
    return list(sums.values())


def _count(mine: int | str, theirs: int | str) -> int | str:
    """The sum of two counts of workers, each a number or a range such as `1:4`."""
    ends = [[int(end) for end in (str(count).split(":") * 2)[:2]] for count in (mine, theirs)]
    least, most = ends[0][0] + ends[1][0], ends[0][-1] + ends[1][-1]
    return least if least == most else f"{least}:{most}"


def _history(histories: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """The samples of all fronts second by second. Counted from the newest: fronts started at different times."""
    longest = max(len(history) for history in histories)
    return [
        _sample([history[-back] for history in histories if len(history) >= back]) for back in range(longest, 0, -1)
    ]


def _sample(samples: Sequence[Sequence[float]]) -> list[float]:
    """One second of all fronts; the fields are those of `panglot.web.pages.sampling.Sample`."""

    def of(index: int, choose: Callable[[Iterable[float]], float]) -> float:
        return round(choose(sample[index] for sample in samples), 3)

    # Percentiles cannot be added. The percentiles of the slowest front are shown: fast fronts must not hide it.
    return [of(0, max), *(of(index, sum) for index in (1, 2, 3)), *(of(index, max) for index in (4, 5, 6)),
            of(7, sum), of(8, sum), of(9, max), of(10, sum), of(11, sum)]  # fmt: skip
