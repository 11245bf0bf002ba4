"""Model files without a script: ONNX, TorchScript, torch.export, SavedModel, Paddle, sklearn, XGBoost, LightGBM."""

from __future__ import annotations

from pathlib import Path

from panglot.dialects.bare import configured, declared, files
from panglot.errors import StartError, near
from panglot.packages.package import Package, config_beside
from panglot.packages.source import bound_elsewhere, functions, parse

LOOKS_FOR = (
    "one model file (.onnx, .pt, .pt2, .joblib, .pkl, .ubj, .bst, .lgb) or a folder with one and no script, "
    "a SavedModel, or a Paddle model with its .pdiparams"
)
YIELDS = True
"""A model file beside the script or configuration of another dialect holds the weights of that script."""
ENTRIES = ("Model", "predict", "predict_batch")
KINDS = {
    "onnx": ("ONNX", "onnxruntime"),
    "torchscript": ("TorchScript", "torch"),
    "pt2": ("torch.export", "torch"),
    "savedmodel": ("SavedModel", "tensorflow"),
    "paddle": ("Paddle inference", "paddlepaddle"),
    "sklearn": ("a pickled estimator", "scikit-learn"),
    "xgboost": ("XGBoost", "xgboost"),
    "lightgbm": ("LightGBM", "lightgbm"),
}
"""The name of each kind, and the library that runs it."""
PICKLED = "loading a pickle runs whatever code is in it: serve only files whose origin you trust"


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a model that cannot work."""
    model = files.of_file(path) if path.is_file() else _only(path)
    if model is None:
        files.refuse_foreign(path)
        return None
    if model.kind not in ("savedmodel", "paddle"):
        files.check(model.path, model.kind)
    folder = model.path if model.kind == "savedmodel" else model.path.parent
    config = config_beside(folder / "model")
    kind, library = KINDS[model.kind]
    known = configured.read(model.path) if model.kind == "torchscript" else None
    inputs = declared.read(config, model.kind, model.path, known.inputs if known is not None else [])
    return Package(
        name=_name(path, model),
        folder=folder,
        script=model.path,
        dialect="bare",
        entry=f"the model, run by {library}",
        reasons=(f"{model.path.name} is a model file ({kind})", "no script: it is served as it is"),
        problems=(f"{model.path.name}: {PICKLED}",) if model.kind == "sklearn" else (),
        config=config,
        options={
            "kind": model.kind,
            "parameters": str(model.parameters or ""),
            "inputs": inputs,
            "outputs": known.outputs if known is not None else [],
        },
        facts={"format": (kind,), "runs with": (library,), "declared input": [_shown(model) for model in inputs]},
    )


def _only(folder: Path) -> files.Found | None:
    """The only model in a folder without a script. Raises StartError where there are several."""
    models = files.in_folder(folder)
    if not models or any(_is_script(script) for script in sorted(folder.glob("*.py"))):
        return None
    if len(models) > 1:
        names = ", ".join(model.path.name for model in models[:-1]) + " and " + models[-1].path.name
        fix = f"name one: panglot serve {near(str(models[0].path))}"
        raise StartError(f"{names} could each be the model", file=str(folder), fix=fix)
    return models[0]


def _is_script(script: Path) -> bool:
    """Whether a file may be a script to serve. An unreadable file may be: then another dialect says what is wrong."""
    if script.name == "model.py":
        return True
    try:
        tree = parse(script)
    except StartError:
        return True
    classes = {getattr(node, "name", "") for node in tree.body}
    return any(name in classes or name in functions(tree.body) or name in bound_elsewhere(tree) for name in ENTRIES)


def _name(path: Path, model: files.Found) -> str:
    """What the package is called: the folder a user points at, or the file without its ending."""
    if path.is_dir() or model.kind == "savedmodel":
        folder = path if path.is_dir() else model.path
        return folder.parent.name if folder.name.isdigit() and folder.parent.name else folder.name
    return model.path.stem


def _shown(model: dict[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in model.items())
