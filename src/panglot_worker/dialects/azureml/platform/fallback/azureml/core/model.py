"""`Model.get_model_path`, by which scripts of the first SDK find their model."""

import os
from typing import Any, List, Optional

DEPLOYED = "azureml-models"
"""The folder that the platform puts deployed models into: azureml-models/NAME/VERSION/FILES."""


class Model:
    """Of the SDK's class, what works without a workspace."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise NotImplementedError(
            "azureml.core.model.Model needs a workspace of Azure: install azureml-core, or use Model.get_model_path"
        )

    @staticmethod
    def get_model_path(model_name: str, version: Optional[int] = None, _workspace: Any = None) -> str:
        """The file or folder of the model that has this name, below AZUREML_MODEL_DIR. Raises ModelNotFoundException.

        Of several versions it is the given one, or the newest. A version that holds one thing is that thing.
        """
        root = os.environ.get("AZUREML_MODEL_DIR") or os.getcwd()
        for folder in (root, os.path.join(root, DEPLOYED), os.path.join(root, "model"), os.path.join(root, "models")):
            path = os.path.join(folder, model_name)
            if os.path.exists(path):
                return _of_version(path, version)
        named = [entry for entry in _entries(root) if os.path.splitext(entry)[0] == model_name]
        if named:
            return os.path.join(root, named[0])
        if os.path.basename(os.path.normpath(root)) == model_name:
            return root
        raise ModelNotFoundException(
            "there is no %s below AZUREML_MODEL_DIR, which is %s and has %s"
            % (model_name, root, ", ".join(_entries(root)[:10]) or "nothing in it")
        )


class ModelNotFoundException(Exception):
    """There is no model of this name."""


def _of_version(path: str, version: Optional[int]) -> str:
    versions = sorted((entry for entry in _entries(path) if entry.isdigit()), key=int)
    chosen = str(version) if str(version) in versions else versions[-1] if versions else ""
    if not chosen:
        return path
    folder = os.path.join(path, chosen)
    inside = _entries(folder)
    return os.path.join(folder, inside[0]) if len(inside) == 1 else folder


def _entries(folder: str) -> List[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
