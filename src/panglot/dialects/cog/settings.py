"""Settings of cog packages: their workers fetch the files that requests name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a package with a predictor."""

    upload_url: str = setting(
        "",
        "upload the files of predictions that have an id or a webhook to this address (PUT ADDRESS/NAME), instead of "
        "sending them as data URLs",
        "str",
        metavar="ADDRESS",
    )

    def for_worker(self) -> dict[str, Any]:
        names = ("fetch_bytes", "fetch_timeout", "fetch_urls", "upload_url")
        return {**super().for_worker(), **{name: getattr(self, name) for name in names}}
