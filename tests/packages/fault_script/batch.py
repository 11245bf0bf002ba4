"""Several items at a time. Every item of a batch acts; the batch is answered when all have."""

from __future__ import annotations

import harm


class Model:
    def predict_batch(self, items):
        if any(item.get("op", "echo") != "echo" for item in items):
            harm.say(f"batch of {len(items)}")
        return [harm.act(item) for item in items]
