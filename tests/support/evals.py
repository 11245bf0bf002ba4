"""Requests of the AVA evals convention, and packages of it written by tests."""

from __future__ import annotations

import base64
import textwrap
from pathlib import Path
from typing import Any

import httpx

from support.server import Server

IMPORTS = "from evals.utils import *\nfrom evals.utils.error import *\n\n\n"


def data_uri(body: bytes = b"hello") -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(body).decode()


def single(body: bytes = b"hello", params: Any = None, **more: Any) -> dict[str, Any]:
    """One request object; `more` goes into its data."""
    value: dict[str, Any] = {"data": {"uri": data_uri(body), **more}}
    return value if params is None else {**value, "params": params}


def group(*bodies: bytes, params: Any = None) -> dict[str, Any]:
    value: dict[str, Any] = {"data": [{"uri": data_uri(body)} for body in bodies]}
    return value if params is None else {**value, "params": params}


def ask(server: Server, value: Any, path: str = "/v1/eval", **options: Any) -> httpx.Response:
    return server.client.post(path, json=value, **options)


def result(server: Server, value: Any) -> Any:
    answer = ask(server, value)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def package(folder: Path, script: str, name: str = "eval.py", **files: str | bytes) -> Path:
    """Write a package; names of further files have `__` for the dot and `___` for the slash."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(script), encoding="utf-8")
    for file, content in files.items():
        path = folder / file.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    return folder


def returning(expression: str, before: str = "", create: str = "{}, 0, ''") -> str:
    """A script whose call returns an expression, in which `model`, `reqs` and `configs` may stand."""
    return (
        f"{IMPORTS}{before}\n\n@create_net_handler\ndef create_net(configs):\n    return {create}\n\n\n"
        f"@net_inference_handler\ndef net_inference(model, reqs):\n    return {expression}\n"
    )


GOOD = "[{'code': 0, 'message': '', 'result': %s} for req in reqs], 0, ''"
"""What a script returns with the same result for every request."""
