"""`panglot export`: runs a package's own export script, then tries the exported models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.exported_programs import PARAMETERS, is_program
from panglot.settings.variables import without_secrets

SCRIPTS = (
    "export_model.py", "tools/export_model.py", "export.py", "tools/export.py", "deploy/export_model.py", "dump.py",
    "tools/dump.py",
)  # fmt: skip
"""The paths that an export script may have in its package, in the order of the search."""
MODELS = {".pdmodel": "paddle", ".json": "paddle", ".onnx": "onnx", ".mge": "megengine"}
FORMS = {"onnx": "ONNX", "megengine": "MegEngine"}
TELL_TALE = "PANGLOT-MODEL "
"""The beginning of the line with the probe's answer; frameworks print before and after it."""
AS_PDMODEL = {"FLAGS_enable_pir_api": "0"}
"""The variable by which Paddle 3 writes the form of Paddle 2. It is read when Paddle is imported."""
NOT_ALL = "Paddle 3 cannot write every net as .pdmodel, such as those with sigmoid or matmul: leave out --pdmodel"
DEEPEST = 6
LAST_LINES = 20


@dataclass(frozen=True)
class ExportedModel:
    """An exported model. `weights` is empty where they are in the model file."""

    kind: str
    file: Path
    weights: Path | None = None

    @property
    def files(self) -> list[Path]:
        info = self.file.with_suffix(".pdiparams.info")
        return [file for file in (self.file, self.weights, info) if file is not None and file.is_file()]

    @property
    def form(self) -> str:
        if self.kind in FORMS:
            return FORMS[self.kind]
        return "Paddle, the program as JSON (3.0 and newer)" if self.file.suffix == ".json" else "Paddle, .pdmodel"


@dataclass
class Exported:
    """The result of an export. `problem` is empty when all went well."""

    script: Path
    seconds: float = 0.0
    problem: str = ""
    output: str = ""
    models: list[ExportedModel] = field(default_factory=list)
    loaded: list[dict[str, Any]] = field(default_factory=list)
    """For each model the answer of the process that loaded it: inputs, outputs, seconds, or an error."""


def find_script(path: Path) -> Path:
    """The export script of a package. Raises StartError when there is none, or the path is missing."""
    if path.is_file():
        if path.suffix != ".py":
            raise StartError("this is no export script", file=str(path), fix="name a .py file, or the package's folder")
        return path
    if not path.is_dir():
        raise StartError(f"{path} does not exist")
    for name in SCRIPTS:
        if (path / name).is_file():
            return path / name
    raise StartError("there is no export script", file=str(path), fix=f"it needs one of {', '.join(SCRIPTS)}")


def root_of(script: Path) -> Path:
    """The folder that an export script runs in: the package's folder, also for a script in tools/ or deploy/."""
    folder = script.resolve().parent
    return folder.parent if folder.name in ("tools", "deploy") else folder


def export(
    script: Path, arguments: Sequence[str], python: str, environ: Mapping[str, str], pdmodel: bool = False
) -> Exported:
    """Run the script and try each exported model; the result has failures. With `pdmodel`, Paddle writes .pdmodel."""
    environ = {**without_secrets(environ), **(AS_PDMODEL if pdmodel else {})}
    root = root_of(script)
    folders = [root, *_named(arguments, root)]
    before = dict(_files(folders))
    began = time.monotonic()
    words = [python or sys.executable, str(script.resolve()), *arguments]
    done = subprocess.run(
        words, cwd=root, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    exported = Exported(script, time.monotonic() - began, output=done.stdout)
    if done.returncode:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        exported.problem = f"the export script ended with {how}" + (f" ({NOT_ALL})" if pdmodel else "")
        return exported
    # New or rewritten files: a script may write over a model of an earlier run.
    changed = [file for file, state in _files(folders) if before.get(file) != state]
    exported.models = models(changed)
    if not exported.models:
        exported.problem = _nothing(changed, root)
        return exported
    if pdmodel and not any(model.file.suffix == ".pdmodel" for model in exported.models):
        exported.problem = f"the export script wrote {exported.models[0].file.name}, and no .pdmodel"
        return exported
    exported.loaded = [load(model, python, environ) for model in exported.models]
    exported.problem = next((str(entry["error"]) for entry in exported.loaded if "error" in entry), "")
    return exported


def _named(arguments: Sequence[str], root: Path) -> Iterator[Path]:
    """Folders that the arguments name: a script may write there too."""
    for word in arguments:
        folder = root / word.rpartition("=")[2]
        if word and (folder.is_dir() or folder.parent.is_dir()):
            yield folder if folder.is_dir() or not folder.suffix else folder.parent


def _files(folders: Sequence[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    for top in dict.fromkeys(folders):
        for folder, names, files in os.walk(top):
            if len(Path(folder).relative_to(top).parts) >= DEEPEST:
                names.clear()
            names[:] = [name for name in names if not name.startswith(".") and name != "__pycache__"]
            for name in files:
                file = Path(folder) / name
                if file.suffix in MODELS or file.suffix == PARAMETERS:
                    about = file.stat()
                    yield file.resolve(), (about.st_mtime_ns, about.st_size)


def models(files: Sequence[Path]) -> list[ExportedModel]:
    """The models among files: a program of Paddle has its parameters beside it, if it has any."""
    complete = []
    for file in sorted(set(files)):
        kind = MODELS.get(file.suffix)
        weights = file.with_suffix(PARAMETERS)
        if kind == "paddle" and weights.is_file():
            complete.append(ExportedModel(kind, file, weights))
        elif kind in FORMS or (kind == "paddle" and is_program(file)):
            complete.append(ExportedModel(kind, file))
    return complete


def _nothing(changed: Sequence[Path], root: Path) -> str:
    if changed:
        names = ", ".join(str(file.relative_to(root) if file.is_relative_to(root) else file) for file in changed)
        return (
            f"the export script wrote {names}, which is no whole model: Paddle's are a .json or .pdmodel and .pdiparams"
        )
    return "the export script ended well but wrote no model (.pdmodel or .json with .pdiparams, .onnx or .mge)"


def load(model: ExportedModel, python: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Load a model in a process of the package's interpreter and run one random input through it."""
    program = (Path(__file__).parent / "export_probe.py").read_text(encoding="utf-8")
    wanted = {"kind": model.kind, "file": str(model.file), "weights": str(model.weights or "")}
    words = [python or sys.executable, "-c", program, json.dumps(wanted)]
    done = subprocess.run(
        words, cwd=model.file.parent, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith(TELL_TALE):
            answer: dict[str, Any] = json.loads(line.removeprefix(TELL_TALE))
            return answer
    errors = [line for line in done.stderr.splitlines() if line.strip()][-LAST_LINES:]
    how = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
    return {"error": f"the process that loaded {model.file.name} {how}: {errors[-1] if errors else 'it said nothing'}"}
