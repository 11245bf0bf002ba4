"""Which files and folders are models, by their names and first bytes."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.exported_programs import PARAMETERS, is_program
from panglot_worker.files.package_files import beginning

LFS = b"version https://git-lfs"
ENDINGS = {
    ".onnx": "onnx",
    ".pt2": "pt2",
    ".pt": "torchscript",
    ".pth": "torchscript",
    ".torchscript": "torchscript",
    ".joblib": "sklearn",
    ".pkl": "sklearn",
    ".pickle": "sklearn",
    ".ubj": "xgboost",
    ".xgb": "xgboost",
    ".bst": "xgboost",
    ".json": "xgboost",
    ".lgb": "lightgbm",
    ".txt": "lightgbm",
}
"""The kind of a file by its ending. Files of any kind may end in .json or .txt: `kind_of` looks at their contents."""
PROGRAMS = (".json", ".pdmodel")
SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
TRITONS = ".savedmodel"
"""The ending of a SavedModel's folder in Triton's repositories."""
FOREIGN = {
    ".plan": "a TensorRT engine", ".engine": "a TensorRT engine", ".graphdef": "a frozen graph of TensorFlow 1",
    ".xml": "an OpenVINO model", ".tflite": "a TensorFlow Lite model", ".gguf": "a model of llama.cpp",
    ".safetensors": "weights without a model", ".h5": "a Keras model", ".keras": "a Keras model",
}  # fmt: skip
"""Models that no runtime of this dialect loads."""
OF_XGBOOST = (b'{"learner"', b'{"version"', b"{L", b"binf")
OF_LIGHTGBM = b"tree\n"


@dataclass(frozen=True)
class Found:
    """A model: the path that names it, its kind in the worker's words, and a second file where its format has two."""

    path: Path
    kind: str
    parameters: Path | None = None


def of_file(path: Path) -> Found | None:
    """The model in a file; None for a file that is no model. Raises StartError for a model that cannot be loaded."""
    if path.name in SAVED_MODEL:
        return Found(path.parent, "savedmodel")
    paddle = _paddle(path)
    if paddle is not None:
        return paddle
    kind = kind_of(path)
    if not kind:
        return None
    check(path, kind)
    return Found(path, kind)


def in_folder(folder: Path) -> list[Found]:
    """All models in a folder itself, or in its only version folder."""
    if any((folder / name).is_file() for name in SAVED_MODEL):
        return [Found(folder, "savedmodel")]
    programs = {path.with_suffix("") for path in folder.glob("*.*") if path.suffix == PARAMETERS or is_program(path)}
    models = [model for stem in sorted(programs) if (model := _paddle(stem.with_suffix(PARAMETERS))) is not None]
    for path in sorted(folder.iterdir()):
        if path.suffix == TRITONS and any((path / name).is_file() for name in SAVED_MODEL):
            models.append(Found(path, "savedmodel"))
        elif path.is_file() and path.with_suffix("") not in programs and kind_of(path):
            models.append(Found(path, kind_of(path)))
    return models


def refuse_foreign(path: Path) -> None:
    """Raise StartError for a model of another runtime: the file itself, or one in a folder without a script."""
    files = [path] if path.is_file() else sorted(path.iterdir())
    if any(file.suffix == ".py" for file in files):
        return
    for file in files:
        what = FOREIGN.get(file.suffix.lower(), "")
        if what and (file.suffix != ".xml" or file.with_suffix(".bin").is_file()):
            fix = "export it as ONNX, or serve a script that loads it"
            raise StartError(f"this is {what}, which is not served without a script", file=str(file), fix=fix)


def kind_of(path: Path) -> str:
    """The kind of a model file; empty for a file that is no model."""
    kind = ENDINGS.get(path.suffix.lower(), "")
    if kind not in ("xgboost", "lightgbm"):
        return kind
    start = beginning(path, 64).lstrip()
    if start.startswith(OF_LIGHTGBM):
        return "lightgbm"
    named = path.suffix.lower() in (".ubj", ".xgb", ".bst", ".lgb")
    return kind if named or start.startswith(OF_XGBOOST[:2]) else ""


def _paddle(path: Path) -> Found | None:
    """The model that a program, or its parameters, belongs to. A program may have no parameters."""
    if path.suffix not in (*PROGRAMS, PARAMETERS):
        return None
    parameters = path.with_suffix(PARAMETERS)
    program = next((path.with_suffix(end) for end in PROGRAMS if path.with_suffix(end).is_file()), None)
    if program is None or not (parameters.is_file() or is_program(program)):
        return None
    return Found(program, "paddle", parameters if parameters.is_file() else None)


def check(path: Path, kind: str) -> None:
    """Raise StartError for a file that surely cannot be loaded: empty, a pointer of Git LFS, or a broken archive."""
    start = beginning(path, 64)
    if not start:
        raise StartError("the file is empty", file=str(path), fix="copy or export it again")
    if start.startswith(LFS):
        raise StartError("this is only a pointer of git LFS, not the model", file=str(path), fix="run git lfs pull")
    if kind in ("torchscript", "pt2"):
        _check_archive(path, kind)


def _check_archive(path: Path, kind: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        fix = "copy or save it again; weights alone need a script that builds their model"
        raise StartError("this is not a complete archive of torch", file=str(path), fix=fix) from None
    if kind == "torchscript" and not any("/code/" in name for name in names):
        raise StartError(
            "this file holds weights and no model to run them",
            file=str(path),
            fix="save the model by torch.jit.script(model).save(...), or serve a script that builds it",
        )
