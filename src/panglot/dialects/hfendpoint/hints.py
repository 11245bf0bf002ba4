"""Things that a script needs, and only the platform has: fixed paths, weights of its hub, a GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from panglot.packages.package import FixedPath
from panglot.packages.source import texts_beginning
from panglot_worker.files.package_files import content_if_any

ROOTS = ("/repository", "/opt/huggingface/model")
"""The folders of the package in the platform's containers."""
FIXED = re.compile(rf"({'|'.join(ROOTS)})(?=/|$)")
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
MOST_SCRIPTS = 200


def fixed_paths(folder: Path) -> tuple[FixedPath, ...]:
    """Every string in the package's scripts that begins with a folder of the platform's containers."""
    scripts = sorted(folder.glob("*.py"))[:MOST_SCRIPTS]
    named = [script for script in scripts if any(root.encode() in content_if_any(script) for root in ROOTS)]
    return tuple(entry for script in named for entry in _fixed_in(script))


def _fixed_in(script: Path) -> Iterator[FixedPath]:
    for match, line in texts_beginning(script, FIXED):
        yield FixedPath(match.string, script.name, line, match[1])


def problems(script: Path, tree: ast.Module, environ: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each thing that may be missing here."""
    return (*_from_hub(script, tree, environ), *_gpu_only(script, tree))


def _from_hub(script: Path, tree: ast.Module, environ: Mapping[str, str]) -> Iterator[str]:
    """Models that `from_pretrained` and `pipeline` name by their path in the hub, and no cache has."""
    seen = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _last_name(node.func) not in ("from_pretrained", "pipeline"):
            continue
        for value in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "model")):
            name = value.value if isinstance(value, ast.Constant) else None
            if not isinstance(name, str) or not HUB_NAME.fullmatch(name) or name in seen:
                continue
            seen.add(name)
            if not (script.parent / name).exists() and not _is_cached(name, environ):
                yield (
                    f"{script.name}:{value.lineno} loads {name} from the Hugging Face Hub, and no cache here has it: "
                    f"without a network, `huggingface-cli download {name}` first, or load it from `path`"
                )


def _is_cached(name: str, environ: Mapping[str, str]) -> bool:
    home = environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    cache = environ.get("HF_HUB_CACHE") or str(Path(home) / "hub")
    return (Path(cache) / ("models--" + name.replace("/", "--"))).is_dir()


def _gpu_only(script: Path, tree: ast.Module) -> Iterator[str]:
    """Tests for CUDA that raise where there is none, as in the handlers of diffusion models."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "cuda" in ast.unparse(node.test) and isinstance(node.body[0], ast.Raise):
            yield f"{script.name}:{node.lineno} refuses to run without a GPU: serve it on a machine that has one"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
