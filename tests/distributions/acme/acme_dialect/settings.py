"""Settings that only ACME's packages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of an ACME package."""

    signature: str = setting("ACME", "what answers are signed with", "str", metavar="NAME")

    def for_worker(self) -> dict[str, Any]:
        """What a worker is told."""
        return {**super().for_worker(), "signature": self.signature}
