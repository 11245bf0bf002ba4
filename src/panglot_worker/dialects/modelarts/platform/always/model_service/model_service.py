"""The top of the class tree: ModelService, then SingleNodeService, then one base class per engine."""

from __future__ import annotations

import time
from typing import Any

from model_service import log

logger = log.getLogger(__name__)


class ModelService:
    """The base of every service. It takes the arguments and does not store them."""

    def __init__(self, model_name: str = "", model_path: str = "") -> None:
        self.ctx = None

    def inference(self, data: Any) -> Any:
        raise NotImplementedError

    def ping(self) -> Any:
        return None

    def signature(self) -> Any:
        return None


class SingleNodeService(ModelService):
    """Three steps, each of which a script may replace; or it replaces `inference` and has its own."""

    def inference(self, data: Any) -> Any:
        """Run the three steps in order, and log how long each took."""
        start = time.perf_counter()
        data = self._preprocess(data)
        prepared = time.perf_counter()
        data = self._inference(data)
        inferred = time.perf_counter()
        data = self._postprocess(data)
        log_times(start, prepared, inferred, time.perf_counter())
        return data

    def _preprocess(self, data: Any) -> Any:
        return data

    def _inference(self, data: Any) -> Any:
        return data

    def _postprocess(self, data: Any) -> Any:
        return data


def log_times(start: float, prepared: float, inferred: float, end: float) -> None:
    """Log how long each step took, in the platform's four lines. The arguments are moments in seconds."""
    logger.info("preprocess time: %.3fms", (prepared - start) * 1000)
    logger.info("infer time: %.3fms", (inferred - prepared) * 1000)
    logger.info("postprocess time: %.3fms", (end - inferred) * 1000)
    logger.info("latency: %.3fms", (end - start) * 1000)
