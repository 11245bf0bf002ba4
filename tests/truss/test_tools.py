"""The tools of Panglot on a truss."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from support.server import PACKAGES, ROOT, panglot, serving, wait_until

EXAMPLE = ROOT / "examples" / "truss"
PREDICT = "/v1/models/model:predict"


def test_doctor_says_what_only_the_platform_has() -> None:
    done = panglot("doctor", str(PACKAGES / "truss_folders"))
    for words in ("apt-get install ffmpeg", "build_commands", "TRUSS_SECRET_hf_access_token"):
        assert words in done.stdout, done.stdout


def test_packages_for_containers_have_the_data(tmp_path: Path) -> None:
    copy = shutil.copytree(EXAMPLE, tmp_path / "copy")
    done = panglot("package", str(copy))
    assert done.returncode == 0, done.stderr
    assert (copy / "deploy" / "Dockerfile").is_file()
    assert "the image will lack what the package's own configuration lists (numpy)" in done.stdout + done.stderr


def test_fixed_paths_lead_to_the_package_with_links(tmp_path: Path) -> None:
    package = shutil.copytree(EXAMPLE, tmp_path / "copy")
    script = package / "model" / "model.py"
    script.write_text(script.read_text().replace('self._data_dir / "digits.npz"', '"/app/data/digits.npz"'))
    done = panglot("inspect", str(package))
    assert "/app/data/digits.npz" in done.stdout


def test_tensors_are_bodies_of_the_platform() -> None:
    with serving("truss_echo") as server:
        tensor = {"name": "BODY", "datatype": "BYTES", "shape": [1], "data": ['{"a": 1}']}
        answer = server.client.post("/v2/models/truss_echo/infer", json={"inputs": [tensor]})
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.json()["outputs"][0]["data"][0]) == {"a": 1, "pre": 1}
        wrong = {**tensor, "data": ['{"op": "raise"}']}
        failed = server.client.post("/v2/models/truss_echo/infer", json={"inputs": [wrong]})
        assert (failed.status_code, list(failed.json())) == (500, ["error"])


def test_the_playground_begins_with_the_models_own_example() -> None:
    with serving("truss_openai") as server:
        document = server.client.get("/openapi.json").json()
        body = document["paths"][PREDICT]["post"]["requestBody"]["content"]["application/json"]
        assert "What is the capital of France?" in json.dumps(body)
        assert "/v1/chat/completions" in document["paths"]


def test_a_script_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "truss_health", tmp_path / "package")
    script = package / "model" / "model.py"
    with serving(package, "--reload") as server:
        assert server.client.post(PREDICT, json={}).json() == 1
        changed = script.read_text().replace("return self._calls\n", 'return "anew"\n')
        server.change(lambda: script.write_text(changed))
        wait_until(lambda: server.client.post(PREDICT, json={}).json() == "anew")
