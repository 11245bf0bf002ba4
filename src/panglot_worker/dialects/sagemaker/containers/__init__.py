"""The containers of SageMaker, by name: each has defaults for functions that a script lacks. Imported on use."""

from __future__ import annotations

import importlib

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.sagemaker.containers.generic import Container

CLASSES = {
    "generic": "generic:Container",
    "pytorch": "pytorch:PyTorch",
    "sklearn": "sklearn:ScikitLearn",
    "xgboost": "xgboost:XgBoost",
    "huggingface": "huggingface:HuggingFace",
    "tensorflow": "generic:Container",
}


def container(package: Package) -> Container:
    """The container of a package."""
    module, _, name = CLASSES[package.options["flavor"]].partition(":")
    made: Container = getattr(importlib.import_module(__name__ + "." + module), name)(package)
    return made
