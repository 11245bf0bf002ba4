"""Settings that only Paddle packages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a Paddle package."""

    entry: str = setting(
        "", "the engine's class or the function that answers requests, if Panglot should not choose", "str",
        metavar="NAME",
    )  # fmt: skip
    onednn: bool = setting(True, "the CPU kernels of oneDNN; Paddle 3.3 fails with them on nets that upsample", "bool")

    allow_pickle: bool = setting(
        False, "uploads may be pickles (.pkl, .npy of objects): anybody who may send requests can then run code", "bool"
    )

    def for_worker(self) -> dict[str, Any]:
        """The settings that a worker gets."""
        return {**super().for_worker(), "entry": self.entry, "onednn": self.onednn, "allow_pickle": self.allow_pickle}
