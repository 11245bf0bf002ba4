"""The parent class of scripts."""

from __future__ import annotations

from typing import Dict, List, Union

Data = Union[Dict, List]  # type: ignore[type-arg]


class Model:
    """A model to serve: `load` once, then `preprocess`, `predict` and `postprocess` for every request.

    The request is the decoded JSON body, and the last result is sent as JSON. A method that is not overridden passes
    on what it is given. In `__init__`, `self.workers = 2` asks for two processes.
    """

    def __init__(self, model_dir: str = "") -> None:
        self.model_dir = model_dir

    def load(self) -> bool:
        """Read the weights. Must be overridden, and return True when all is well."""
        return None  # type: ignore[return-value]

    def preprocess(self, request: Data) -> Data:
        return request

    def predict(self, request: Data) -> Data:
        return request

    def postprocess(self, request: Data) -> Data:
        return request

    def __call__(self, request: Data) -> Data:
        """All three steps."""
        return self.postprocess(self.predict(self.preprocess(request)))
