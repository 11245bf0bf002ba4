"""Settings that only evals packages have."""

from __future__ import annotations

from dataclasses import dataclass

from panglot import settings
from panglot.settings import setting

TABLES = ("evals",)
"""The table with the values of the platform's configuration file. `config.py` reads it."""


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of an evals package."""

    config: str = setting("", "the platform's configuration file, instead of serving-eval.conf", "str", metavar="FILE")
    uri_root: str = setting(
        "", "the only folder whose files a request may name; none by default", "folder", metavar="FOLDER"
    )
    model_file_bytes: int = setting(8 << 30, "largest file of a model that is fetched by its address", "size", least=1)
