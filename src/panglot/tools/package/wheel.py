"""A wheel of the running version of Panglot, made of its own files, without a network and without a build.

The same files give the same bytes, whether they are installed, installed as editable, or a source checkout.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import panglot
import panglot_worker
from panglot import __version__
from panglot.errors import StartError

NAME = f"panglot-{__version__}-py3-none-any.whl"
ABOUT = f"panglot-{__version__}.dist-info"
GENERATOR = "Generator: panglot package\n"
TAGS = f"Wheel-Version: 1.0\n{GENERATOR}Root-Is-Purelib: true\nTag: py3-none-any\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the wheel, the oldest that a zip file can have: real times differ between installations."""
FILE = 0o100644 << 16


def build() -> bytes:
    """The bytes of the wheel. Raises StartError where its requirements are unknown."""
    files = dict(sorted({**_modules(), **_about()}.items()))
    files[f"{ABOUT}/WHEEL"] = TAGS.encode()
    record = "".join(f"{name},sha256={_digest(body)},{len(body)}\n" for name, body in files.items())
    files[f"{ABOUT}/RECORD"] = f"{record}{ABOUT}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = FILE
            archive.writestr(entry, body, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def is_ours(file: Path) -> bool:
    """Whether a file is a wheel that this module made."""
    try:
        with zipfile.ZipFile(file) as archive:
            tags = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
            return any(GENERATOR.encode() in archive.read(name) for name in tags)
    except (OSError, zipfile.BadZipFile):
        return False


def _digest(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


def _modules() -> dict[str, bytes]:
    """Every file of the two import packages, by its name in the wheel."""
    files = {}
    for package in (panglot, panglot_worker):
        folder = Path(package.__path__[0])
        for file in folder.rglob("*"):
            name = file.relative_to(folder.parent)
            if file.is_file() and file.suffix != ".pyc" and not any(word.startswith(".") for word in name.parts):
                files[name.as_posix()] = file.read_bytes()
    return files


# What it is called, needs and offers


def _about() -> dict[str, bytes]:
    root = Path(panglot.__path__[0]).resolve().parents[1]
    about = _of_source(root) or _of_installed()
    if not about:
        problem = "this copy of Panglot was neither installed nor is it a source checkout, so its needs are not known"
        raise StartError(problem, file=str(root), fix="install it with pip")
    return {f"{ABOUT}/{name}": body for name, body in about.items()}


def _of_installed() -> dict[str, bytes]:
    """The description that was written when these files were installed; empty where they were not."""
    # Another version of Panglot may be installed too: only the one with these files counts.
    for distribution in metadata.distributions(name="panglot"):
        files = {file.as_posix(): file for file in distribution.files or ()}
        known = files.get("panglot/__init__.py")
        if (
            known is None
            or Path(str(distribution.locate_file(known))).resolve() != Path(str(panglot.__file__)).resolve()
        ):
            continue
        inside = {name.partition(".dist-info/")[2]: file for name, file in files.items()}
        wanted = [name for name in inside if name in ("METADATA", "entry_points.txt") or name.startswith("licenses/")]
        return {name: inside[name].read_binary() for name in wanted}
    return {}


def _of_source(root: Path) -> dict[str, bytes]:
    """The description in pyproject.toml, where these files are a source checkout; else empty."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return {}
    if project.get("name") != "panglot":
        return {}
    about = {"METADATA": "".join(f"{line}\n" for line in _metadata(project)).encode()}
    points = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    about["entry_points.txt"] = "\n".join(_section(name, table) for name, table in points.items() if table).encode()
    license = root / "LICENSE"
    return {**about, **({"licenses/LICENSE": license.read_bytes()} if license.is_file() else {})}


def _metadata(project: Mapping[str, Any]) -> Iterator[str]:
    yield from ("Metadata-Version: 2.4", "Name: panglot", f"Version: {__version__}")
    yield f"Summary: {project['description']}"
    yield f"License-Expression: {project['license']}"
    yield f"Requires-Python: {project['requires-python']}"
    yield "License-File: LICENSE"
    yield from (f"Requires-Dist: {needed}" for needed in project["dependencies"])
    for extra, names in project["optional-dependencies"].items():
        yield f"Provides-Extra: {extra}"
        yield from (f"Requires-Dist: {_only_with(extra, needed)}" for needed in names)


def _only_with(extra: str, needed: str) -> str:
    requirement, _, marker = (word.strip() for word in needed.partition(";"))
    return f'{requirement}; ({marker}) and extra == "{extra}"' if marker else f'{requirement}; extra == "{extra}"'


def _section(name: str, table: Mapping[str, str]) -> str:
    return "".join([f"[{name}]\n", *(f"{key} = {value}\n" for key, value in table.items())])
