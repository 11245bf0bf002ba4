"""Settings that only truss packages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a truss."""

    predict_threads: bool = setting(
        False,
        "run calls of a plain predict in threads of one worker, as the platform does, instead of in several workers",
        "bool",
    )

    def for_worker(self) -> dict[str, Any]:
        return {**super().for_worker(), "predict_threads": self.predict_threads}
