"""The engines of the platform: their base classes, and what `model_path` is for each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Engine:
    """One model_type. `weights` are the endings of model files, the likeliest first, where `model_path` is a file."""

    name: str
    base: str
    module: str
    weights: tuple[str, ...] = ()
    raw: bool = False
    """Whether the script gets the body as bytes. The codes of its errors then begin with PY."""
    variable: str = ""
    """The variable with the platform's own start arguments."""
    default: str = ""
    """The service of a package without a script."""


PICKLED = (".m", ".pkl", ".joblib", ".model", ".ubj", ".bin")
SKLEARN = "model_service.python_model_service"
ENGINES = (
    Engine("TensorFlow", "TfServingBaseService", "model_service.tfserving_model_service", variable="TF_MODEL_ARGS",
           default="model_service.tfserving_vision_service:TfServingVisionService"),
    Engine("PyTorch", "PTServingBaseService", "model_service.pytorch_model_service",
           weights=(".pth", ".pt", ".pth.tar", ".bin", ".ckpt", ".pkl", ".onnx"), variable="MODEL_SERVER_ARGS",
           default="model_service.pytorch_vision_service:PTServingVisionService"),
    Engine("MindSpore", "SingleNodeService", "model_service.model_service", variable="MODEL_SERVER_ARGS"),
    Engine("Scikit_Learn", "XgSklServingBaseService", SKLEARN, weights=PICKLED, raw=True, variable="PY_MODEL_ARGS",
           default=f"{SKLEARN}:XgSklServingBaseService"),
    Engine("XGBoost", "XgSklServingBaseService", SKLEARN, weights=PICKLED, raw=True, variable="PY_MODEL_ARGS",
           default=f"{SKLEARN}:XgSklServingBaseService"),
    Engine("Spark_MLlib", "SparkServingBaseService", "model_service.spark_model_service", raw=True,
           variable="PY_MODEL_ARGS", default="model_service.spark_model_service:SparkServingBaseService"),
    Engine("Caffe", "CaffeBaseService", "model_service.caffe_model_service"),
    Engine("MXNet", "MXNetBaseService", "mms.model_service.mxnet_model_service"),
)  # fmt: skip
NAMES = (*(engine.name for engine in ENGINES), "Image")
BY_NAME = {engine.name: engine for engine in ENGINES}

OTHER_BASES = {
    "HiaiBaseService": ("MindSpore", "model_service.hiai_model_service"),
    "FrozenGraphBaseService": ("TensorFlow", "model_service.frozen_graph_model_service"),
    "TfServingVisionService": ("TensorFlow", "model_service.tfserving_vision_service"),
    "PTServingVisionService": ("PyTorch", "model_service.pytorch_vision_service"),
}
ANY = "SingleNodeService"
"""The base class that all engines with a parsed request have. It is the only one of MindSpore."""

BASES: dict[str, str] = {engine.base: engine.name for engine in reversed(ENGINES)} | {
    base: name for base, (name, _) in OTHER_BASES.items()
}
"""The engine of each base class. Of several engines with one base class, the first one counts."""
MODULES = frozenset(engine.module for engine in ENGINES) | {module for _, module in OTHER_BASES.values()}


@dataclass(frozen=True)
class Model:
    """The arguments that the service is constructed with, and the reason for the path."""

    name: str
    path: str
    reason: str


def choose(base: str, model_type: str) -> tuple[Engine, str]:
    """The engine of a script, and a warning where config.json names another one. The base class decides."""
    if not base:
        return BY_NAME.get(model_type, BY_NAME["MindSpore"]), ""
    engine = BY_NAME[BASES[base]]
    other = BY_NAME.get(model_type)
    if other is None or other is engine:
        return engine, ""
    if other.base == engine.base or (base == ANY and not other.raw):
        return other, ""
    return engine, f"config.json says {model_type}, but {base} belongs to {engine.name}; it is served as {engine.name}"


def model(engine: Engine, folder: Path, environ: Mapping[str, str]) -> Model:
    """`model_name` and `model_path` for an engine, by the platform's arguments or docs/dialects/modelarts.md's rule."""
    given = arguments(environ.get(engine.variable, "")) if engine.variable else {}
    name = given.get("model_name", "serve")
    if "model_path" in given:
        path = str(folder / given["model_path"])
        return Model(name, path, f"{path} (from {engine.variable})")
    return Model(name, *_path(engine, folder))


def arguments(text: str) -> dict[str, str]:
    """`--model_path x --model_name=y` as a table."""
    given: dict[str, str] = {}
    words = iter(shlex.split(text))
    for word in words:
        key, equals, value = word.partition("=")
        given[key.lstrip("-")] = value if equals else next(words, "")
    return given


def _path(engine: Engine, folder: Path) -> tuple[str, str]:
    if engine.weights:
        return _weights(engine, folder)
    if engine.name == "Spark_MLlib":
        saved = folder / "spark_model"
        return str(saved), f"{saved.name} (the folder {engine.name} models are saved in)"
    if engine.name == "TensorFlow" and not (folder / "saved_model.pb").is_file():
        versions = sorted(
            (path.parent for path in folder.glob("*/saved_model.pb") if path.parent.name.isdigit()),
            key=lambda path: int(path.name),
        )
        if versions:
            return str(versions[-1]), f"{versions[-1].name}/ (the highest version folder that has a saved_model.pb)"
    return str(folder), f"the package's folder (always so for {engine.name})"


def _weights(engine: Engine, folder: Path) -> tuple[str, str]:
    """The first weights file: shallow before deep, then by ending, then by name."""
    candidates = sorted(_candidates(engine, folder))
    if not candidates:
        return f"{folder}/", f"the package's folder: it has no file ending in {', '.join(engine.weights)}"
    path = candidates[0][-1]
    shown = str(path.relative_to(folder))
    others = [str(entry[-1].relative_to(folder)) for entry in candidates[1:]]
    if not others:
        return str(path), f"{shown} (the only weights file)"
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return str(path), f"{shown} (chosen before {', '.join(others[:3])}{more}: by depth, then ending, then name)"


def _candidates(engine: Engine, folder: Path) -> Iterator[tuple[int, int, str, Path]]:
    for path in files(folder, depth=3):
        ending = next((number for number, end in enumerate(engine.weights) if path.name.lower().endswith(end)), -1)
        if ending >= 0:
            yield len(path.relative_to(folder).parts), ending, path.name, path


def files(folder: Path, depth: int, limit: int = 5000) -> Iterator[Path]:
    """The files of a folder and below it; hidden folders and environments are left out."""
    waiting = [(folder, 1)]
    while waiting and limit > 0:
        current, level = waiting.pop(0)
        try:
            entries = sorted(current.iterdir())
        except OSError:
            continue
        for entry in entries:
            limit -= 1
            if entry.name.startswith(".") or entry.name in ("__pycache__", "node_modules"):
                continue
            if entry.is_file():
                yield entry
            elif entry.is_dir() and level < depth and not (entry / "pyvenv.cfg").exists():
                waiting.append((entry, level + 1))
