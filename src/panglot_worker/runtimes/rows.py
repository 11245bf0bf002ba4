"""Several requests in one run of a model: their rows laid together, run in pieces that fit, and cut apart again."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from panglot_worker.runtimes.base import Arrays, ModelRuntime


class Feed(NamedTuple):
    """The inputs of one request, and the outputs it wants."""

    arrays: Arrays
    wanted: Tuple[str, ...]

    @property
    def rows(self) -> int:
        return int(next(iter(self.arrays.values())).shape[0])

    @property
    def kind(self) -> Any:
        """Requests of the same kind can be laid together."""
        shapes = tuple((name, str(array.dtype), array.shape[1:]) for name, array in sorted(self.arrays.items()))
        return self.wanted, shapes


class NotByRows(Exception):
    """A run did not give one row of output for each row of input."""


def run_together(model: ModelRuntime, feeds: Sequence[Feed], most: int) -> List[Arrays]:
    """The outputs of all requests, in order; those of one kind share runs of at most `most` rows."""
    groups: Dict[Any, List[int]] = {}
    for at, feed in enumerate(feeds):
        groups.setdefault(feed.kind, []).append(at)
    results: List[Arrays] = [{}] * len(feeds)
    for indexes in groups.values():
        parts = _run_group(model, [feeds[at] for at in indexes], most)
        for at, part in zip(indexes, parts):
            results[at] = part
    return results


def _run_group(model: ModelRuntime, feeds: List[Feed], most: int) -> List[Arrays]:
    import numpy

    if len(feeds) == 1:
        return [run_rows(model, feeds[0], most)]
    names = feeds[0].arrays
    together = {name: numpy.concatenate([feed.arrays[name] for feed in feeds]) for name in names}
    outputs = run_rows(model, Feed(together, feeds[0].wanted), most)
    results, start = [], 0
    for feed in feeds:
        stop = start + feed.rows
        results.append({name: array[start:stop] for name, array in outputs.items()})
        start = stop
    return results


def run_rows(model: ModelRuntime, feed: Feed, most: int) -> Arrays:
    """The outputs of one request, in runs of at most `most` rows. Without rows one is run and thrown away."""
    import numpy

    rows = feed.rows
    if rows == 0:
        blank = {name: numpy.zeros((1, *array.shape[1:]), array.dtype) for name, array in feed.arrays.items()}
        for name, array in blank.items():
            blank[name] = array if array.dtype.kind != "O" else numpy.full(array.shape, "", object)
        return {name: array[:0] for name, array in model.run(blank, feed.wanted).items()}
    pieces = [
        _checked(model.run(_piece(feed.arrays, start, most), feed.wanted), min(most, rows - start))
        for start in range(0, rows, most)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return {name: numpy.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _piece(arrays: Arrays, start: int, most: int) -> Arrays:
    return {name: array[start : start + most] for name, array in arrays.items()}


def _checked(outputs: Arrays, rows: int) -> Arrays:
    """The outputs of a run. Raises NotByRows: the caller then runs each request alone."""
    for name, array in outputs.items():
        if getattr(array, "shape", ())[:1] != (rows,):
            raise NotByRows("%d rows gave %s of shape %s" % (rows, name, list(getattr(array, "shape", ()))))
    return outputs
