"""Which container of SageMaker a package was written for: its defaults, and how it answers errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from panglot_worker.files.package_files import LARGEST_CONFIGURATION, UnreadableFile, content_if_any, json_value

GENERIC, PYTORCH, SKLEARN, XGBOOST = "generic", "pytorch", "sklearn", "xgboost"
HUGGINGFACE, TENSORFLOW = "huggingface", "tensorflow"
FLAVORS = (GENERIC, PYTORCH, SKLEARN, XGBOOST, HUGGINGFACE, TENSORFLOW)
MODULES = (
    ("sagemaker_xgboost_container", XGBOOST),
    ("sagemaker_huggingface_inference_toolkit", HUGGINGFACE),
    ("sagemaker_pytorch_serving_container", PYTORCH),
    ("sagemaker_sklearn_container", SKLEARN),
    ("transformers", HUGGINGFACE),
    ("sentence_transformers", HUGGINGFACE),
    ("diffusers", HUGGINGFACE),
    ("torch", PYTORCH),
    ("xgboost", XGBOOST),
    ("sklearn", SKLEARN),
    ("joblib", SKLEARN),
    ("sagemaker_containers", SKLEARN),
)
"""Modules in imports and requirements, the most telling first: scripts with xgboost often use sklearn's metrics too."""
ON_PYPI = {"scikit-learn": "sklearn", "sentence-transformers": "sentence_transformers"}
"""Distributions with another name than their modules."""
REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)", re.MULTILINE)
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "tf_model.h5", "model.safetensors.index.json")


class Flavor(NamedTuple):
    """A container, and the reason why it was chosen."""

    name: str
    reason: str


def choose(
    imports: Mapping[str, int], handles: bool, script: Path | None, model_dir: Path, environ: Mapping[str, str]
) -> Flavor:
    """The container of a package. `handles`: the script has the functions of the TensorFlow Serving container."""
    if handles:
        return Flavor(TENSORFLOW, "the script has handlers of the TensorFlow Serving container")
    if script is not None:
        for module, name in MODULES:
            line = _line(imports, module)
            if line:
                return Flavor(name, f"{script.name}:{line} imports {module}")
    for variable in ("HF_TASK", "HF_MODEL_ID"):
        if environ.get(variable):
            return Flavor(HUGGINGFACE, f"{variable} is set")
    if script is not None:
        wanted = set(_requirements(script.parent / "requirements.txt"))
        for module, name in MODULES:
            if module in wanted:
                return Flavor(name, f"requirements.txt names {module}")
    return _by_files(model_dir)


def _line(imports: Mapping[str, int], module: str) -> int:
    lines = [line for name, line in imports.items() if name == module or name.startswith(module + ".")]
    return min(lines, default=0)


def _requirements(file: Path) -> Iterator[str]:
    text = content_if_any(file, LARGEST_CONFIGURATION).decode("utf-8", "replace")
    for match in REQUIREMENT.finditer(text):
        name = match[1].lower()
        yield ON_PYPI.get(name, name.replace("-", "_"))


def _by_files(folder: Path) -> Flavor:
    names = sorted(child.name for child in folder.iterdir()) if folder.is_dir() else []
    if "model_index.json" in names or ("config.json" in names and (_is_transformer(folder) or set(WEIGHTS) & {*names})):
        return Flavor(HUGGINGFACE, "the model is one of Hugging Face's libraries")
    for name in names:
        if name.endswith((".pt", ".pth")):
            return Flavor(PYTORCH, f"{name} is here")
        if name.endswith(".joblib"):
            return Flavor(SKLEARN, f"{name} is here")
        if name == "xgboost-model":
            return Flavor(XGBOOST, f"{name} is here")
    return Flavor(GENERIC, "nothing points to another container")


def _is_transformer(folder: Path) -> bool:
    try:
        config = json_value(folder / "config.json")
    except (OSError, UnreadableFile):
        return False
    return isinstance(config, dict) and "architectures" in config
