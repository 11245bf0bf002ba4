"""schemathesis against `/openapi.json`: every answer is a declared one, and none is a failure of the server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import ROOT, Server, serving
from support.traffic import SOAK, times

CONFIG = Path(__file__).with_name("schemathesis.toml")
TOKEN = "secret-token"
LEFT_OUT = "positive_data_acceptance,negative_data_rejection"
"""Whether a script takes what its type hints say, and nothing else, is the script's affair."""

TENSORS = "^/v2/models/.*/infer$"
"""What a script makes of any tensors is its affair too; of the one below nothing comes but they themselves."""

OF_ALL = "^/(v2|models|metrics|health)"
"""Routes that every server has: asked of one that wants a token, and with tensors."""

OF_HEADERS = "negative_data_rejection"
"""It takes every header we do not know for wrong data. tests/worker/test_hint_shapes.py shows what is refused."""

LONG = ("documented_json", ROOT / "examples" / "digits") if SOAK else ()
PACKAGES = ("documented_form", "documented_stream", *LONG)

PROGRAM = Path(sys.executable).with_name("schemathesis")


def fuzz(server: Server, folder: Path, *options: str, left_out: str = LEFT_OUT) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
    return subprocess.run(
        [
            *(str(PROGRAM), "--config-file", str(CONFIG), "run", f"{server.url}/openapi.json"),
            *("--exclude-checks", left_out, "--max-examples", str(times(10, 200)), "--generation-deterministic"),
            *("--request-timeout", "20", "--continue-on-failure", "--no-color", "--workers", "1"),
            *(options or ("--exclude-path-regex", TENSORS if SOAK else OF_ALL)),
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: Path(package).name)
def test_every_answer_is_declared(package: str | Path, tmp_path: Path) -> None:
    with serving(package) as server:
        done = fuzz(server, tmp_path)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
        assert server.metric("panglot_worker_restarts_total") == 0
    assert "Traceback" not in server.log


def test_a_typed_script_takes_what_its_schema_says(tmp_path: Path) -> None:
    with serving("typed") as server:
        paths = "^/(predict|box|search|sizes|areas|sum|words)$"
        done = fuzz(server, tmp_path, "--include-path-regex", paths, "-H", "X-Timeout-Ms: 20000", left_out=OF_HEADERS)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
        assert server.metric("panglot_worker_restarts_total") == 0
    assert "Traceback" not in server.log


EMPTY_200 = {"evals": ",content_type_conformance,response_schema_conformance"}
"""An empty batch is answered with 200 and no body there, and OpenAPI cannot say "this content, or none"."""


@pytest.mark.parametrize("dialect", ["tiinfer", "modelarts", "evals"])
def test_every_answer_of_a_platform_is_declared(dialect: str, tmp_path: Path) -> None:
    """A script that cannot read a picture is answered as its platform does, with a 500 if that does."""
    with serving(ROOT / "examples" / dialect) as server:
        done = fuzz(server, tmp_path, left_out=f"{LEFT_OUT},not_a_server_error{EMPTY_200.get(dialect, '')}")
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
        assert server.metric("panglot_worker_restarts_total") == 0


def test_every_answer_is_declared_where_a_token_is_needed(tmp_path: Path) -> None:
    """The same with the token; and no route that says it needs one answers without."""
    with serving("documented_json", env={"PANGLOT_TOKEN": TOKEN}) as server:
        done = fuzz(server, tmp_path, "--header", f"Authorization: Bearer {TOKEN}", "--exclude-path-regex", TENSORS)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert "Traceback" not in server.log


def test_every_answer_to_tensors_is_declared(tmp_path: Path) -> None:
    with serving("tensors") as server:
        done = fuzz(server, tmp_path, "--include-path-regex", "^/v2")
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
        assert server.metric("panglot_worker_restarts_total") == 0
    assert "Traceback" not in server.log
