"""The tools on packages of TorchServe and SageMaker: inspect, run, check, doctor, bench, package, new, and pages."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from support.server import ROOT, panglot, serving, wait_until
from support.torchserve import archive

EXAMPLES = ROOT / "examples"


class Cloud(NamedTuple):
    """A dialect by its example."""

    name: str
    model: str
    """What its example is called; that of TorchServe has its name from a line of the archiver."""
    script: str
    path: str
    answer: str
    """A text of the answer to the example's request, and what the script is changed to answer."""
    before: str
    after: str


CLOUDS = (
    Cloud("torchserve", "sentiment", "handler.py", "/predictions/sentiment", "friendly", '"friendly"', '"very kind"'),
    Cloud("sagemaker", "mine", "code/inference.py", "/invocations", "digits", '"digits"', '"numbers"'),
)


@pytest.fixture(params=CLOUDS, ids=lambda cloud: cloud.name)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    return request.param


@pytest.fixture
def folder(cloud: Cloud, tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLES / cloud.name, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))


def archived(cloud: Cloud, folder: Path, target: Path) -> Path:
    if cloud.name == "torchserve":
        return archive(folder, target / "mine.mar", "handler.py", configFile="model-config.yaml")
    with tarfile.open(target / "model.tar.gz", "w:gz") as opened:
        opened.add(folder, ".")
    return target / "model.tar.gz"


def test_inspect_run_check_and_doctor_on_an_archive(cloud: Cloud, folder: Path, tmp_path: Path) -> None:
    made, request = str(archived(cloud, folder, tmp_path)), str(folder / "request.json")
    shown = panglot("inspect", made, "--json")
    assert json.loads(shown.stdout)["dialect"] == cloud.name
    run = panglot("run", made, request)
    assert (run.returncode, cloud.answer in run.stdout) == (0, True), run.stderr
    same = panglot("check", made, request, "--against", str(folder))
    assert same.returncode == 0, same.stdout + same.stderr
    script = folder / cloud.script
    assert cloud.before in script.read_text()
    script.write_text(script.read_text().replace(cloud.before, cloud.after))
    assert panglot("check", made, request, "--against", str(folder)).returncode == 1
    well = panglot("doctor", made)
    assert (well.returncode, "all well" in well.stdout) == (0, True), well.stdout


def test_a_bench_of_an_archive(cloud: Cloud, folder: Path, tmp_path: Path) -> None:
    made = str(archived(cloud, folder, tmp_path))
    flags = ("--duration", "0.5", "--warmup", "0", "--concurrency", "2", "--check", "--json")
    done = panglot("bench", made, str(folder / "request.json"), *flags)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_files_to_deploy(cloud: Cloud, folder: Path) -> None:
    done = panglot("package", str(folder))
    assert done.returncode == 0, done.stderr
    assert (folder / "deploy" / "Dockerfile").is_file()


def test_the_playground_begins_with_the_packages_request(cloud: Cloud, folder: Path) -> None:
    with serving(folder) as server:
        document = server.client.get("/openapi.json").json()
        request = json.loads((folder / "request.json").read_text())
        paths = [path for path in document["paths"] if path.startswith(cloud.path.partition("sentiment")[0])]
        body = document["paths"][paths[0]]["post"]["requestBody"]["content"]["application/json"]
        assert json.dumps(request) in json.dumps(body)


def test_a_body_as_a_tensor(cloud: Cloud, folder: Path) -> None:
    content = (folder / "request.json").read_text()
    tensor = {"name": "BODY", "datatype": "BYTES", "shape": [1], "data": [content]}
    parameters = {"content_type": "application/json"}
    with serving(folder) as server:
        answer = server.client.post(
            f"/v2/models/{cloud.model}/infer", json={"inputs": [tensor], "parameters": parameters}
        )
        assert answer.status_code == 200, answer.text
        assert cloud.answer in answer.json()["outputs"][0]["data"][0]


def test_a_script_that_changes_is_loaded_anew(cloud: Cloud, folder: Path) -> None:
    request, script = (folder / "request.json").read_text(), folder / cloud.script
    with serving(folder, "--reload") as server:

        def answer() -> str:
            headers = {"content-type": "application/json"}
            return server.client.post(cloud.path, content=request, headers=headers).text

        assert cloud.answer in answer()
        server.change(lambda: script.write_text(script.read_text().replace(cloud.before, cloud.after)))
        wait_until(lambda: cloud.after.strip('"') in answer())


def test_a_new_package_is_served(cloud: Cloud, tmp_path: Path) -> None:
    done = panglot("new", cloud.name, str(tmp_path / "fresh"))
    assert done.returncode == 0, done.stderr
    sent = next((tmp_path / "fresh").glob("request.*"))
    run = panglot("run", str(tmp_path / "fresh"), str(sent))
    assert (run.returncode, '"status": 200' in run.stdout) == (0, True), run.stdout + run.stderr
