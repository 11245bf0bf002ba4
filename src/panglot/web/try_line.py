"""A line of curl that works on the served package."""

from __future__ import annotations

import mimetypes
import os
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

from panglot.asking.base import Ask, Form, Json, Whole
from panglot.asking.curl import TOKEN, curl

HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")


def try_line(base: str, path: str, api: dict[str, Any], folder: Path, token: bool = False) -> str:
    """The line for a POST to `base + path`; `api` is what a ready worker says about its script.

    With `token`, the line sends the one in the caller's PANGLOT_TOKEN.
    """
    example: dict[str, Any] = api.get("example") or {}
    if example.get("kind") == "video":
        return _video_line(base, example, folder, TOKEN if token else "")
    return curl(base, _ask(path, api, folder), token)


def _video_line(base: str, example: dict[str, Any], folder: Path, token: str) -> str:
    """A stream of a file the server may open; where it may open none, the video is sent."""
    if example["may_be_named"]:
        return f"curl -X POST{token} {base}/start/{quote(example['name'] or 'video.mp4', safe='')}"
    file = os.path.relpath(folder / example["name"]) if example["name"] else "video.mp4"
    return f"curl -N{token} --data-binary @{shlex.quote(file)} {base}/analyze_video"


def base_url(scheme: str, host: str, server: tuple[str, int] | None) -> str:
    """Where a client reached this server: by the name it used if that is a proper one, else by the socket's address."""
    if HOST.fullmatch(host):
        return f"{scheme}://{host}"
    address, port = server or ("127.0.0.1", 8080)
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


def _ask(path: str, api: dict[str, Any], folder: Path) -> Ask:
    example: dict[str, Any] = api.get("example") or {}
    kind = example.get("kind")
    if kind == "form":
        names = example.get("names", {})
        files: dict[str, Path | list[Path]] = {
            name: Path(_sample(folder, names.get(name, ""), name, type)) for name, type in example["files"].items()
        }
        return Ask(path, Form(files, dict.fromkeys(example["fields"], "...")))
    if kind == "file":
        file = Path(_sample(folder, example.get("name", ""), "file", example["type"]))
        return Ask(path, Whole(file, example["type"]))
    return Ask(path, Json(example["value"] if kind == "json" else ...))


def _sample(folder: Path, wanted: str, field: str, content_type: str) -> str:
    """A file to send: the one the example names, another of its type in the package, or just a likely name."""
    if wanted and (folder / wanted).is_file():
        return os.path.relpath(folder / wanted)
    kind = content_type or "application/octet-stream"
    endings = mimetypes.guess_all_extensions(kind)
    try:
        samples = sorted(path for path in folder.iterdir() if path.name == wanted or path.suffix.lower() in endings)
    except OSError:
        samples = []
    if not samples:
        return field + (mimetypes.guess_extension(kind) or ".bin")
    return os.path.relpath(next((path for path in samples if path.name == wanted), samples[0]))
