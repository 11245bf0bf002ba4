"""The tools of Panglot on packages of Azure ML."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support import azureml
from support.server import PACKAGES, ROOT, panglot, serving, wait_until

EXAMPLE = ROOT / "examples" / "azureml"


def test_doctor_says_what_is_missing(tmp_path: Path) -> None:
    script = "import no_such_package_anywhere\nimport os\n" + azureml.SCRIPT
    joined = 'PATH = os.path.join(os.getenv("AZUREML_MODEL_DIR"), "model/gone.pkl")\n'
    done = panglot("doctor", str(azureml.write(tmp_path, script + joined)))
    assert "no_such_package_anywhere" in done.stdout
    assert "model/gone.pkl" in done.stdout


@pytest.mark.parametrize("package", [EXAMPLE, PACKAGES / "azureml_repository"], ids=lambda path: path.name)
def test_packages_for_containers_have_the_model(package: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(package, tmp_path / "copy")
    done = panglot("package", str(copy))
    assert done.returncode == 0, done.stderr
    assert (copy / "deploy" / "Dockerfile").is_file()


def test_a_file_goes_into_a_raw_request_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "picture.bin").write_bytes(b"abc")
    with serving("azureml_raw") as server:
        done = panglot("call", server.url + "/score", str(tmp_path / "picture.bin"))
        assert "<3 bytes of image/jpeg>" in done.stdout, done.stdout + done.stderr


def test_a_script_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    package = azureml.write(tmp_path, "# azureml\ndef init():\n    pass\ndef run(raw_data):\n    return 1\n")
    with serving(package, "--reload") as server:
        assert server.client.post("/score", content="x").json() == 1
        changed = (package / "score.py").read_text().replace("return 1", "return 2")
        server.change(lambda: (package / "score.py").write_text(changed))
        wait_until(lambda: server.client.post("/score", content="x").json() == 2)


def test_the_model_folder_of_panglot_toml(tmp_path: Path) -> None:
    package = azureml.write(tmp_path / "package", panglot__toml=f'model_dir = "{tmp_path / "elsewhere"}"\n')
    (tmp_path / "elsewhere").mkdir()
    with serving(package) as server:
        assert server.client.post("/score", content="x").json()["model_dir"] == str(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["azureml_plain", "azureml_raw"])
def test_a_package_agrees_with_itself(name: str, tmp_path: Path) -> None:
    """How long run() took is in the answer's headers, and no part of the result that is compared."""
    (tmp_path / "input.json").write_text('{"op": "text", "a": 1}')
    other = shutil.copytree(PACKAGES / name, tmp_path / "other")
    done = panglot("check", str(PACKAGES / name), str(tmp_path / "input.json"), "--against", str(other))
    assert (done.returncode, "both sides agree on 1 input" in done.stdout) == (0, True), done.stdout + done.stderr
