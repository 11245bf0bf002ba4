"""What model files and batches did in each run: how many rows shared it, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from panglot_worker.line import wire

NO_ANSWER = wire.MORE | wire.ERROR | wire.FETCH | wire.UNRUN


@dataclass
class Runs:
    """Runs of as many rows. Times are in microseconds."""

    count: int = 0
    input_us: int = 0
    infer_us: int = 0
    output_us: int = 0


class SharedRuns:
    """The runs of more than one row. All other calls were a run of one row each, which nobody needs to count."""

    def __init__(self) -> None:
        self.by_rows: dict[int, Runs] = {}
        self.calls = 0
        """Calls in these runs, and below, their rows and the sums of their times."""
        self.rows = 0
        self.totals = Runs()

    def add(self, replies: Sequence[wire.Reply], most: int) -> None:
        """Count what one script call answered; more than `most` rows were several runs."""
        good = [reply for reply in replies if reply.status == 200 and not reply.flags & NO_ANSWER]
        rows = sum(reply.rows for reply in good)
        if rows <= 1:
            return
        taken = sum(reply.times[0] + reply.times[1] for reply in good)
        given = sum(reply.times[3] + reply.times[4] for reply in good)
        inference = good[0].times[2]
        self.calls += len(good)
        self.rows += rows
        self.totals.input_us += taken
        self.totals.infer_us += inference * len(good)
        self.totals.output_us += given
        whole, rest = divmod(rows, most)
        for size, count in ((most, whole), (rest, 1 if rest else 0)):
            if count:
                runs = self.by_rows.setdefault(size, Runs())
                runs.count += count
                runs.input_us += taken * size * count // rows
                runs.infer_us += inference * size * count // rows
                runs.output_us += given * size * count // rows
