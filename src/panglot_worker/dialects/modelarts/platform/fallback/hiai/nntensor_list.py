"""Tensors for one call of the chip."""

from __future__ import annotations

from typing import Any, Iterable, List


class NNTensorList:
    def __init__(self, tensors: Any = ()) -> None:
        self.tensors: List[Any] = list(tensors) if isinstance(tensors, Iterable) else [tensors]

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, index: int) -> Any:
        return self.tensors[index]

    def append(self, tensor: Any) -> None:
        self.tensors.append(tensor)
