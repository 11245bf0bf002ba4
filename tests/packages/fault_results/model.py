"""Gives back something else than one result per item."""

from __future__ import annotations


class Model:
    def predict_batch(self, items):
        right = [item["id"] for item in items]
        return WRONG[items[0].get("results", "right")](right)


WRONG = {
    "right": lambda right: right,
    "too_few": lambda right: right[:-1],
    "too_many": lambda right: [*right, 0],
    "none": lambda right: None,
    "generator": lambda right: (result for result in right),
    "dict": lambda right: dict(enumerate(right)),
}
