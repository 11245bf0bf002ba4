"""Models of Triton's Python backend: NAME/1/model.py with class TritonPythonModel, and its config.pbtxt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot.dialects.triton import config as configs
from panglot.errors import StartError
from panglot.packages.model_folder import is_number
from panglot.packages.package import Package, config_beside
from panglot.packages.source import classes, functions, parse

SCRIPT, CLASS = "model.py", "TritonPythonModel"
LOOKS_FOR = f"NAME/1/{SCRIPT} with class {CLASS}"


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    script = _script(path)
    if script is None:
        return None
    node = next((node for node in classes(parse(script)) if node.name == CLASS), None)
    if node is None:
        return None
    if "execute" not in functions(node.body) and not node.bases:
        raise StartError(
            f"{CLASS} has no execute", file=str(script), line=node.lineno, fix="def execute(self, requests)"
        )
    version = script.parent.name if script.parent.name.isdigit() else "1"
    root = script.parent.parent if script.parent.name.isdigit() else script.parent
    config = configs.read(root)
    return Package(
        name=str(config.fields.get("name") or root.name),
        folder=script.parent,
        script=script,
        dialect="triton",
        entry=f"{CLASS}.execute",
        reasons=(f"{script.relative_to(root)}:{node.lineno} defines class {CLASS}", *_configured(root)),
        problems=_problems(config.fields),
        config=config_beside(script) or config_beside(root / SCRIPT),
        defaults=config.defaults,
        options={"config": config.fields, "root": str(root), "version": version},
        facts={"version": (version,)},
        whole=root,
    )


def _script(path: Path) -> Path | None:
    """The script at a path: itself, in the folder, or in the folder of the highest version."""
    if path.is_file():
        return path if path.suffix == ".py" else path.parent / SCRIPT if path.name == configs.NAME else None
    if (path / SCRIPT).is_file():
        return path / SCRIPT
    versions = [entry for entry in path.iterdir() if is_number(entry.name) and (entry / SCRIPT).is_file()]
    return max(versions, key=lambda entry: int(entry.name)) / SCRIPT if versions else None


def _configured(root: Path) -> tuple[str, ...]:
    return (f"{configs.NAME} beside it",) if (root / configs.NAME).is_file() else ()


def _problems(config: dict[str, Any]) -> tuple[str, ...]:
    if configs.ENVIRONMENT in config.get("parameters", {}):
        return (f"{configs.NAME}: {configs.ENVIRONMENT} has no effect here; --python names an interpreter",)
    return ()
