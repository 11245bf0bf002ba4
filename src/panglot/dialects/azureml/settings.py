"""Settings that only azureml packages have."""

from __future__ import annotations

from dataclasses import dataclass

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of an azureml package."""

    entry_script: str = setting(
        "", "the scoring script, from the package's folder; AZUREML_ENTRY_SCRIPT by default", "str", metavar="FILE"
    )
    model_dir: str = setting(
        "", "the folder that scripts find as AZUREML_MODEL_DIR, instead of the one found", "folder", metavar="FOLDER"
    )
