"""Draws a picture in steps, and tells of each."""

import time
from typing import Iterator

from cog import BasePredictor, Input, Path


class Predictor(BasePredictor):
    def predict(self, steps: int = Input(default=3, ge=1, le=50), pause: float = 0.0) -> Iterator[Path]:
        """Draw a picture, step by step."""
        for step in range(steps):
            print(f"step {step}")
            time.sleep(pause)
            drawn = Path(f"/tmp/panglot-step-{step}.txt")
            drawn.write_text(f"picture {step}")
            yield drawn
