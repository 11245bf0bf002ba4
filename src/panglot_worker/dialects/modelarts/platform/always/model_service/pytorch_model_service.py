"""PyTorch: the script loads `self.model`; the base calls it."""

from __future__ import annotations

from typing import Any

from model_service.model_service import SingleNodeService


class PTServingBaseService(SingleNodeService):
    """`_inference` calls `self.model` on the value of every key."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model: Any = None

    def _inference(self, data: Any) -> Any:
        return {key: self.model(value) for key, value in data.items()}
