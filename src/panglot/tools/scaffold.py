"""`panglot new`: a small package that works at once, one template per dialect."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.settings import suggestion

TEMPLATES = Path(__file__).parent / "templates"
ENDING = ".template"


@dataclass(frozen=True)
class Template:
    """A folder of `*.template` files, and how the package made from it is called."""

    folder: str
    files: dict[str, str]
    """Every file, in the order to show them, with what it is."""
    call: str
    """A curl line; {folder} stands for the package."""
    prepare: str = ""
    """What to run before the package is served, likewise."""


PLAIN = Template(
    folder="plain",
    files={
        "model.py": "the script: load, predict, example",
        "weights.json": "what it has learned",
        "request.json": "a request to send",
        "panglot.toml": "settings, all at their defaults",
        "requirements.txt": "what to install for it",
        "README.md": "how to serve and call it",
    },
    call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/predict",
)


def _modelarts(engine: str, makes: str, call: str = "-F images=@{folder}/sky.png", **more: str) -> Template:
    files = {
        "customize_service.py": "the script: the steps of a request",
        "config.json": "the engine, the API and what to install",
        "train.py": f"makes {makes}",
        **more,
        "README.md": "how to serve and call it",
    }
    prepare = "python {folder}/train.py"
    return Template(f"modelarts_{engine}", files, f"curl {call} http://127.0.0.1:8080/", prepare)


MODELARTS = {
    "pytorch": _modelarts("pytorch", "colours.pth and sky.png"),
    "tensorflow": _modelarts("tensorflow", "saved_model.pb, variables/ and sky.png"),
    "mindspore": _modelarts("mindspore", "colours.ckpt and sky.png"),
    "sklearn": _modelarts(
        "sklearn",
        "colours.m",
        "-H 'Content-Type: application/json' -d @{folder}/request.json",
        **{"request.json": "a request to send"},
    ),
}

TIINFER = Template(
    folder="tiinfer",
    files={
        "model_service.py": "the script: load, preprocess, predict, postprocess",
        "weights.json": "what it has learned",
        "request.json": "a request to send",
        "config.json": "the API, as the platform's console shows it",
        "requirements.txt": "what to install for it",
        "README.md": "how to serve and call it",
    },
    call="curl -d @{folder}/request.json http://127.0.0.1:8080/inference",
)

PADDLE = Template(
    folder="paddle",
    files={
        "infer.py": "the script: load, preprocess, run, postprocess",
        "preprocess_ops.py": "from a picture to an array",
        "net.py": "the net, and how it learns",
        "export_model.py": "makes inference/, which is served",
        "predict.py": "the same prediction by the training engine",
        "images/demo.png": "a picture to send",
        "requirements.txt": "what to install for it",
        "README.md": "how to export, serve and call it",
    },
    call="curl -H 'Content-Type: image/png' --data-binary @{folder}/images/demo.png http://127.0.0.1:8080/predict",
    prepare="panglot export {folder}",
)

EVALS = Template(
    folder="evals",
    files={
        "eval.py": "the script: create_net, net_inference",
        "weights.json": "what it has learned",
        "panglot.toml": "what the script is given at its start",
        "request.json": "a request to send",
        "requirements.txt": "what to install for it",
        "README.md": "how to serve and call it",
    },
    call="curl -H 'Content-Type: application/json' -d @{folder}/request.json http://127.0.0.1:8080/v1/eval",
)

MEGFLOW = {
    "image": Template(
        folder="megflow_image",
        files={
            "graph.toml": "the graph: what is connected to what",
            "colour.py": "the node it names",
            "sky.png": "a picture to send",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -H 'Content-Type: image/*' --data-binary @{folder}/sky.png http://127.0.0.1:8084/analyze/sky",
    ),
    "bytes": Template(
        folder="megflow_bytes",
        files={
            "graph.toml": "the graph: what is connected to what",
            "count.py": "the node it names",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl --data-binary 'how many words are these' http://127.0.0.1:8085/analyze/bytes",
    ),
    "video": Template(
        folder="megflow_video",
        files={
            "graph.toml": "the graph: what is connected to what",
            "moving.py": "the nodes it names",
            "clip.mp4": "a video to start",
            "panglot.toml": "settings: whose files a request may name",
            "requirements.txt": "what to install for it",
            "README.md": "how to serve and call it",
        },
        call="curl -X POST http://127.0.0.1:8086/start/clip.mp4",
    ),
}

DIALECTS = {
    "plain": PLAIN,
    "tiinfer": TIINFER,
    "modelarts": MODELARTS["pytorch"],
    "evals": EVALS,
    "paddle": PADDLE,
    "megflow": MEGFLOW["image"],
}
ENGINES = {"modelarts": MODELARTS, "megflow": MEGFLOW}
"""Dialects that have a template per engine, or per kind of service; the first is the default."""


def create(dialect: str, folder: Path, force: bool = False, engine: str = "") -> Template:
    """Write the package. Raises StartError when there is no such template or the folder cannot be filled.

    With `force` the folder may hold other files; those of the template's names are replaced.
    """
    template = find(dialect, engine)
    try:
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise StartError("this folder is not empty", file=str(folder), fix="choose another, or add --force")
        folder.mkdir(parents=True, exist_ok=True)
        for name in template.files:
            _write(folder / name, _source(template, name).read_bytes())
    except FileExistsError:
        raise StartError("this is a file, not a folder", file=str(folder)) from None
    except OSError as error:
        raise StartError(f"cannot be written: {error.strerror}", file=error.filename or str(folder)) from None
    return template


def find(dialect: str, engine: str = "") -> Template:
    if dialect not in DIALECTS:
        fix = suggestion(dialect, DIALECTS) or f"use one of {', '.join(DIALECTS)}"
        raise StartError(f"there is no template for '{dialect}'", fix=fix)
    if not engine:
        return DIALECTS[dialect]
    engines = ENGINES.get(dialect, {})
    if engine not in engines:
        fix = suggestion(engine, engines) or f"use one of {', '.join(engines)}" if engines else "leave it out"
        word = "kind" if dialect == "megflow" else "engine"
        raise StartError(f"{dialect} has no template for the {word} '{engine}'", fix=fix)
    return engines[engine]


def next_commands(template: Template, folder: Path) -> list[str]:
    """What to type to serve the new package, and to call it."""
    shown = shlex.quote(str(folder))
    first = [template.prepare.format(folder=shown)] if template.prepare else []
    return [*first, f"panglot serve {shown}", template.call.format(folder=shown)]


def _source(template: Template, name: str) -> Path:
    return TEMPLATES / template.folder / (name + ENDING)


def _write(path: Path, content: bytes) -> None:
    """A link is replaced, not written through."""
    path.parent.mkdir(exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_bytes(content)
