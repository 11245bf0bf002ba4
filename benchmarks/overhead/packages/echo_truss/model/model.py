"""Echo of a truss."""

from __future__ import annotations

from typing import Any


class Model:
    def load(self) -> None:
        """There is no model."""

    def predict(self, model_input: Any) -> Any:
        return model_input
