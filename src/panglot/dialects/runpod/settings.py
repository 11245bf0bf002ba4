"""Settings of runpod packages: their workers fetch the files that jobs name, with the helpers of the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a package with a handler."""

    def for_worker(self) -> dict[str, Any]:
        names = ("fetch_bytes", "fetch_timeout", "fetch_urls")
        return {**super().for_worker(), **{name: getattr(self, name) for name in names}}
