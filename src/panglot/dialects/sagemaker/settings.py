"""Settings that only sagemaker packages have."""

from __future__ import annotations

from dataclasses import dataclass

from panglot import settings
from panglot.dialects.sagemaker.flavor import FLAVORS
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a sagemaker package."""

    flavor: str = setting(
        "",
        "the container of SageMaker whose defaults stand in for functions that the script lacks, instead of the one "
        "that its imports, requirements and files tell",
        "str",
        choices=("", *FLAVORS),
    )
    entry_point: str = setting(
        "", "the script, from the package's folder; SAGEMAKER_PROGRAM by default", "str", metavar="FILE"
    )
    model_data: str = setting(
        "",
        "the folder, or the model.tar.gz, that model_fn gets as model_dir, where it is not in the package",
        "str",
        metavar="PATH",
    )
