"""Draws a progress bar while it works, as tqdm does."""

import os
import sys
import time

from cog import BasePredictor, Input


class Predictor(BasePredictor):
    def predict(self, gate: str = "", total: int = Input(default=8, ge=1, le=100)) -> str:
        """Work until there is a file of this name, at half of the steps, and then to the end."""
        for step in range(total + 1):
            draw(step, total)
            while 2 * step >= total and gate and not os.path.exists(gate):
                time.sleep(0.05)
                draw(step, total)
        return "done"


def draw(step, total):
    bar = "#" * (10 * step // total)
    line = "\rdrawing: %3d%%|%-10s| %d/%d [00:00<00:01,  8.11it/s]" % (100 * step // total, bar, step, total)
    sys.stderr.write(line)
    sys.stderr.flush()
