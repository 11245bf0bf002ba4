"""One tensor for the chip: an array and its shape."""

from __future__ import annotations

from typing import Any


class NNTensor:
    def __init__(self, data: Any = None, height: int = 0, width: int = 0, channel: int = 0, batch: int = 1) -> None:
        self.data = data
        self.height = height
        self.width = width
        self.channel = channel
        self.batch = batch
