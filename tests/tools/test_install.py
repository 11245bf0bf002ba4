"""`--install`: what a package of a platform asks for, in the platform's own file, is there when its script runs."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.server import panglot, serving

WANTED = "xmltodict==0.13.0"
"""A small package without dependencies, which neither the server nor its tests need."""
READ = 'xmltodict.__version__ + xmltodict.parse("<a>b</a>")["a"]'
TRUSS = f"""
import xmltodict


class Model:
    def load(self):
        pass

    def predict(self, model_input):
        return {READ}
"""
AZUREML = f"""
import xmltodict


def init():
    pass


def run(raw_data):
    return {READ}
"""
HANDLER = f"""
import xmltodict


class EndpointHandler:
    def __init__(self, path):
        pass

    def __call__(self, data):
        return {READ}
"""
DEPLOYMENT = """
name: blue
code_configuration: {code: code, scoring_script: score.py}
environment: {conda_file: environment/conda.yaml, image: mcr.microsoft.com/azureml/some}
"""
CONDA = f"""
name: own
dependencies:
  - python=3.11
  - pip
  - pip: [{WANTED}]
"""
PACKAGES = {
    "truss": (
        {"config.yaml": f"model_name: x\nrequirements: [{WANTED}]\n", "model/model.py": TRUSS},
        "/v1/models/model:predict",
    ),
    "azureml": (
        {"deployment.yml": DEPLOYMENT, "environment/conda.yaml": CONDA, "code/score.py": AZUREML},
        "/score",
    ),
    "hfendpoint": ({"requirements.txt": WANTED, "handler.py": HANDLER}, "/"),
}
"""The files of a package, and its path, by dialect."""


@pytest.mark.rest("installs a package from the registry")
@pytest.mark.document("truss.48", "azureml.59", "hfendpoint.48")
@pytest.mark.parametrize("dialect", PACKAGES)
def test_what_a_package_of_a_platform_asks_for_is_installed(dialect: str, tmp_path: Path) -> None:
    files, path = PACKAGES[dialect]
    package = tmp_path / "own"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = panglot("serve", str(package), "--port", "0", env=env)
    assert (done.returncode, "the package 'xmltodict' is not installed" in done.stderr) == (3, True), done.stderr
    asked = "-r requirements.txt" if "requirements.txt" in files else WANTED
    assert asked in panglot("inspect", str(package)).stdout
    for first in (True, False):
        with serving(package, "--install", env=env) as server:
            answer: httpx.Response = server.client.post(path, json={"inputs": 1})
            assert answer.json() == "0.13.0b"
            assert (f"pip install {asked}" in server.log) is first
