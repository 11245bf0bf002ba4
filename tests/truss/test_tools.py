"""The tools of Panglot on a truss."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import PACKAGES, ROOT, panglot, serving, wait_until

EXAMPLE = ROOT / "examples" / "truss"
PREDICT = "/v1/models/model:predict"


@pytest.mark.document("truss.34")
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


READER = """
with open("/app/data/names.txt") as file:
    FIRST = file.read()


class Model:
    def load(self):
        with open("/app/data/names.txt") as file:
            self.names = file.read()

    def predict(self, request):
        with open("/app/model/more.txt") as file:
            return [FIRST, self.names, file.read()]
"""


@pytest.mark.document("truss.44")
@pytest.mark.skipif(os.getuid() != 0 or os.path.lexists("/app"), reason="makes /app, as root")
def test_fixed_paths_lead_to_the_package_with_links(tmp_path: Path) -> None:
    for name, text in {"data/names.txt": "dog", "model/more.txt": "cat", "model/model.py": READER}.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text)
    (tmp_path / "own" / "config.yaml").write_text("model_name: linked\n")
    assert "/app/data/names.txt" in panglot("inspect", str(tmp_path / "own")).stdout
    without = panglot("serve", str(tmp_path / "own"), "--port", "0", seconds=60)
    assert without.returncode == 3
    assert "--link-paths makes /app" in without.stderr
    with serving(tmp_path / "own", "--link-paths") as server:
        assert server.client.post(PREDICT, json={}).json() == ["dog", "dog", "cat"]
    assert not os.path.lexists("/app")


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


@pytest.mark.document("truss.35")
def test_a_script_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "truss_health", tmp_path / "package")
    script = package / "model" / "model.py"
    with serving(package, "--reload") as server:
        assert server.client.post(PREDICT, json={}).json() == 1
        assert server.client.post("/hot-reload").status_code == 404
        changed = script.read_text().replace("return self._calls\n", 'return "anew"\n')
        server.change(lambda: script.write_text(changed))
        wait_until(lambda: server.client.post(PREDICT, json={}).json() == "anew")


ENVIRONMENT = Path("/etc/b10_dynamic_config/environment")
AS_ROOT = pytest.mark.skipif(
    os.getuid() != 0 or os.path.lexists(ENVIRONMENT.parent), reason=f"makes {ENVIRONMENT}, as root"
)
MODEL = """
class Model:
    def __init__(self, environment):
        self.seen = ["init", environment]

    def setup_environment(self, environment):
        self.seen += ["setup", environment]

    def load(self):
        self.seen.append("load")

    def predict(self, request):
        return self.seen
"""


@AS_ROOT
@pytest.mark.document("truss.36")
def test_the_environment_that_the_platform_tells_of(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("model_name: told\n")
    (tmp_path / "model" / "model.py").write_text(MODEL)
    with serving(tmp_path) as server:
        assert server.client.post(PREDICT, json={}).json() == ["init", None, "load"]
    with told_of({"name": "production"}) as told, serving(tmp_path) as server:
        assert server.client.post(PREDICT, json={}).json() == ["init", told, "setup", told, "load"]


CHANGING = """
class Model:
    def __init__(self, **kwargs):
        self.seen = []

    {waits}def setup_environment(self, environment):
        self.seen.append(environment["name"])
        if environment["name"] == "broken":
            raise RuntimeError("no such cluster")

    def load(self):
        pass

    {waits}def predict(self, request):
        return self.seen
"""


@contextlib.contextmanager
def told_of(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """The platform's file, while it tells of this environment."""
    ENVIRONMENT.parent.mkdir()
    try:
        ENVIRONMENT.write_text(json.dumps(environment))
        yield environment
    finally:
        shutil.rmtree(ENVIRONMENT.parent)


@AS_ROOT
@pytest.mark.document("truss.38")
@pytest.mark.parametrize("waits", ["", "async "])
def test_a_new_environment_is_told_before_the_next_call(waits: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("model_name: told\n")
    (tmp_path / "model" / "model.py").write_text(CHANGING.format(waits=waits))
    with told_of({"name": "staging"}), serving(tmp_path) as server:

        def seen() -> list[str]:
            return list(server.client.post(PREDICT, json={}).json())

        # The platform does not await it before the load.
        first = [] if waits else ["staging"]
        assert seen() == first
        ENVIRONMENT.write_text('{"name": "broken"}')
        wait_until(lambda: seen() == [*first, "broken"])
        ENVIRONMENT.write_text('{"name": "production"}')
        wait_until(lambda: seen() == [*first, "broken", "production"])
        ENVIRONMENT.write_text('{"name": "production", "pod": 2}')
        wait_until(lambda: seen() == [*first, "broken", "production", "production"])
        assert "setup_environment() failed: RuntimeError: no such cluster" in server.log
