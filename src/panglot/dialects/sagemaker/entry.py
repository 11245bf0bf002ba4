"""The script of a path, and the platform's functions that it has.

The script does not run. So a training script, which ends with `if __name__ == "__main__"`, is a script like others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, bound_elsewhere, classes, functions, parse
from panglot_worker.files.package_files import content_if_any

DEFAULT = "inference.py"
CODE = "code"
FOLDERS = (CODE, "", "src", "source", "source_dir", "scripts", "inference")
"""The folders in which repositories have their script, from the folder that is served."""
ARGUMENTS = {
    "model_fn": 1, "input_fn": 2, "predict_fn": 2, "output_fn": 2, "transform_fn": 4, "pre_model_fn": 1,
    "model_warmup_fn": 2,
}  # fmt: skip
"""The functions of a script, and how many arguments each has without the context."""
FORMS = {
    "model_fn": "model_fn(model_dir)",
    "input_fn": "input_fn(input_data, content_type)",
    "predict_fn": "predict_fn(data, model)",
    "output_fn": "output_fn(prediction, accept)",
    "transform_fn": "transform_fn(model, input_data, content_type, accept)",
    "pre_model_fn": "pre_model_fn(model_dir)",
    "model_warmup_fn": "model_warmup_fn(model_dir, model)",
}
HANDLERS = ("input_handler", "output_handler")
HANDLER = "handler"
SERVICE, SERVICE_BASES = "handler_service.py", ("DefaultHandlerService", "HuggingFaceHandlerService")
"""The name of a script that replaces the toolkit's service, and the base classes of such a service."""
WORDS = (b"model_fn", b"transform_fn", b"input_fn", b"_handler", b"handler", b"Handler", b"predict_fn", b"output_fn")
ESTIMATOR = ("features", "labels", "mode")
"""Arguments of the `model_fn` of TensorFlow's estimators, which has nothing to do with the platform's."""
MOST_SCRIPTS = 200


@dataclass(frozen=True)
class Entry:
    """The script of a package."""

    script: Path
    root: Path
    """The folder that has all of the package."""
    tree: ast.Module
    reason: str

    @property
    def folder(self) -> Path:
        """The folder of the code, which modules are imported from."""
        return self.script.parent

    @property
    def names(self) -> frozenset[str]:
        """What the script defines, imports or assigns at its top level."""
        return frozenset({*functions(self.tree.body), *bound_elsewhere(self.tree)})

    @property
    def has_handlers(self) -> bool:
        """Whether it is a script for the TensorFlow Serving container."""
        return not {*ARGUMENTS} & self.names and ({*HANDLERS} <= self.names or HANDLER in self.names)

    @property
    def is_service(self) -> bool:
        """Whether it is a service that the model server calls instead of the toolkit's."""
        return self.script.name == SERVICE and _service(self.tree) is not None

    @property
    def is_open(self) -> bool:
        """Whether the script imports names by a star: only running it would tell them."""
        stars = (node for node in self.tree.body if isinstance(node, ast.ImportFrom))
        return any(alias.name == "*" for node in stars for alias in node.names)


def find(path: Path, named: str) -> Entry | None:
    """The script at a path; `named` is its name by a setting or a variable. Raises StartError."""
    if path.is_file():
        if path.suffix != ".py":
            return None
        root = path.parent.parent if path.parent.name == CODE else path.parent
        return _entry(path, root, named="")
    if named:
        return _named(path, named)
    if path.name == CODE and _is_model_folder(path.parent):
        path = path.parent
    for name in FOLDERS:
        entry = _in_folder(path / name, path) if (path / name).is_dir() else None
        if entry is not None:
            return entry
    _refuse_pipeline(path)
    return None


def _is_model_folder(folder: Path) -> bool:
    """Whether a folder with a folder `code` is an unpacked model: it has files, but no script."""
    return any(child.is_file() for child in folder.iterdir()) and not any(folder.glob("*.py"))


def _named(path: Path, named: str) -> Entry | None:
    """The script of a name. As on the platform, the name may lack its ending."""
    file = named if named.endswith(".py") else named + ".py"
    for name in FOLDERS:
        script = path / name / file
        if script.is_file():
            return _entry(script, path, named=named)
    return None


def _in_folder(folder: Path, root: Path) -> Entry | None:
    scripts = sorted(folder.glob("*.py"))[:MOST_SCRIPTS]
    # A service comes first, because it calls the other scripts. Then the platform's default name wins over all others.
    for script in sorted(scripts, key=lambda script: script.name != SERVICE):
        if script.name in (SERVICE, DEFAULT):
            entry = _entry(script, root, named="")
            if entry is not None:
                return entry
    entries = [entry for script in scripts if (entry := _entry(script, root, named="")) is not None]
    if len(entries) > 1:
        names = " and ".join(entry.script.name for entry in entries)
        fix = f"name it: --entry-point {entries[0].script.name}"
        raise StartError(f"{names} could each be the script", file=str(folder), fix=fix)
    return entries[0] if entries else None


def _entry(script: Path, root: Path, named: str) -> Entry | None:
    text = content_if_any(script)
    if not named and not any(word in text for word in WORDS):
        return None
    tree = parse(script)
    sign = _sign(tree, script, bool(named))
    if not sign:
        return None
    entry = Entry(script, root, tree, sign)
    check(entry)
    return entry


def _sign(tree: ast.Module, script: Path, is_named: bool) -> str:
    """The sign that a script was written for this platform; empty where there is none."""
    service = _service(tree) if script.name == SERVICE else None
    if service is not None:
        return f"{script.name}:{service.lineno} defines the service {service.name}"
    defined, elsewhere = functions(tree.body), bound_elsewhere(tree)
    model = defined.get("model_fn")
    if model is not None and not _is_estimator(model):
        return f"{script.name}:{model.lineno} defines model_fn({ast.unparse(model.args)})"
    if model is not None:
        return ""
    known = {*defined, *elsewhere}
    is_default = script.name == DEFAULT
    if "transform_fn" in defined or {"input_fn", "predict_fn"} <= defined.keys():
        name = "transform_fn" if "transform_fn" in defined else "predict_fn"
        return f"{script.name}:{defined[name].lineno} defines {name}"
    if (is_default or is_named) and {*ARGUMENTS} & known:
        name = sorted({*ARGUMENTS} & known)[0]
        line = defined[name].lineno if name in defined else elsewhere[name]
        return f"{script.name}:{line} has {name}"
    if {*HANDLERS} <= known:
        line = defined[HANDLERS[0]].lineno if HANDLERS[0] in defined else elsewhere[HANDLERS[0]]
        return f"{script.name}:{line} defines input_handler and output_handler"
    handler = defined.get(HANDLER)
    if is_default and handler is not None and [argument.arg for argument in handler.args.args] == ["data", "context"]:
        return f"{script.name}:{handler.lineno} defines handler(data, context)"
    return ""


def _service(tree: ast.Module) -> ast.ClassDef | None:
    """The last class that derives from a service of the toolkits."""
    services = [
        node for node in classes(tree)
        if any(ast.unparse(base).rpartition(".")[2] in SERVICE_BASES for base in node.bases)
    ]  # fmt: skip
    return services[-1] if services else None


def _is_estimator(model: Function) -> bool:
    names = [argument.arg for argument in model.args.args]
    return (bool(names) and names[0] == ESTIMATOR[0]) or {"mode", "params"} <= set(names)


# What the functions must be


def check(entry: Entry) -> None:
    """Raise StartError for a script that cannot work, here or on the platform."""
    defined = functions(entry.tree.body)
    others = [name for name in ("input_fn", "predict_fn", "output_fn") if name in entry.names]
    if "transform_fn" in entry.names and others:
        line = defined["transform_fn"].lineno if "transform_fn" in defined else 0
        problem = (
            "Cannot use transform_fn implementation in conjunction with input_fn, predict_fn, and/or output_fn "
            "implementation"
        )
        fix = f"remove transform_fn, or {' and '.join(others)}"
        raise StartError(problem, file=str(entry.script), line=line, fix=fix)
    for name, count in ARGUMENTS.items():
        node = defined.get(name)
        if node is None or node.decorator_list:
            # A decorator may change the signature: only the import of the script will tell.
            continue
        if isinstance(node, ast.AsyncFunctionDef):
            problem = f"{name} is async, and the platform calls it without awaiting it"
            raise StartError(problem, file=str(entry.script), line=node.lineno, fix=f"def {FORMS[name]}")
        given = parameters(node)
        if given not in (count, count + 1):
            problem = f"{name} takes {given} arguments but {count} were given."
            fix = f"def {FORMS[name]}, and a last parameter for the context if it wants one"
            raise StartError(problem, file=str(entry.script), line=node.lineno, fix=fix)
    if entry.has_handlers and len({*HANDLERS} & entry.names) == 1 and HANDLER not in entry.names:
        raise StartError("Handlers are not implemented correctly", file=str(entry.script), fix="define both handlers")


def parameters(function: Function) -> int:
    """How many parameters a function has. As on the platform, `*args` counts as one, and so does one with a default."""
    arguments = function.args
    named = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    return named + (arguments.vararg is not None) + (arguments.kwarg is not None)


def is_training(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__"`, which runs on the platform's training machines alone."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


# What is not served


def _refuse_pipeline(path: Path) -> None:
    """Raise StartError for a script that deploys several models in a row."""
    for script in sorted(path.glob("*.py"))[:MOST_SCRIPTS]:
        if b"PipelineModel" not in content_if_any(script) or b"sagemaker" not in content_if_any(script):
            continue
        for line in _pipelines(parse(script)):
            raise StartError(
                "this deploys an inference pipeline of SageMaker, several models in a row, and is not one itself",
                file=str(script),
                line=line,
                fix="put its models in one folder, beside them one with pipeline.json: panglot serve --models DIR",
            )


def _pipelines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "PipelineModel":
                yield node.lineno
