"""What is taken for a package of Azure ML, which of its files is the script, and where its model lies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from panglot.dialects import discover
from panglot.dialects.azureml.deployment import by_line
from panglot.errors import StartError
from panglot.packages.conda import conda_packages, pip_packages
from panglot.packages.package import Package
from support.azureml import SCRIPT, write
from support.server import PACKAGES, panglot

BARE = "def init():\n    pass\n\n\ndef run(data):\n    return data\n"


@pytest.mark.document("azureml.02")
@pytest.mark.parametrize("name", ["score.py", "main.py", "scoring.py", "my_score_v2.py"])
def test_a_folder_with_a_script_of_a_usual_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, "")
    (tmp_path / name).write_text(SCRIPT)
    package = discover(tmp_path)
    assert (package.dialect, package.script.name, package.folder) == ("azureml", name, tmp_path)
    assert discover(tmp_path / name).dialect == "azureml"


@pytest.mark.parametrize("folder", ["src", "code", "onlinescoring"])
def test_a_script_in_the_folder_of_the_code(tmp_path: Path, folder: str) -> None:
    write(tmp_path / folder)
    package = discover(tmp_path)
    assert (package.folder, package.root) == (tmp_path / folder, tmp_path)


@pytest.mark.document("azureml.44")
@pytest.mark.parametrize("word", ["AZUREML_MODEL_DIR", "azureml", "inference_schema", "rawhttp"])
def test_a_word_of_the_platform_is_enough_and_init_and_run_alone_are_not(tmp_path: Path, word: str) -> None:
    script = tmp_path / "main.py"
    script.write_text(BARE)
    with pytest.raises(StartError):
        discover(tmp_path)
    script.write_text(f"# {word}\n{BARE}")
    assert discover(tmp_path).dialect == "azureml"


def test_the_name_score_is_enough(tmp_path: Path) -> None:
    assert discover(write(tmp_path, BARE)).dialect == "azureml"


@pytest.mark.document("azureml.03")
def test_the_entry_script_that_a_variable_or_a_flag_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, SCRIPT, online___other__py=BARE)
    assert discover(tmp_path, given={"entry_script": "online/other.py"}).script == tmp_path / "online" / "other.py"
    monkeypatch.setenv("AZUREML_ENTRY_SCRIPT", "online/other.py")
    package = discover(tmp_path)
    assert (package.script, package.folder) == (tmp_path / "online" / "other.py", tmp_path)
    assert package.environment["AZUREML_ENTRY_SCRIPT"] == "online/other.py"


def test_two_scripts_are_a_question(tmp_path: Path) -> None:
    write(tmp_path, "", a_score__py=SCRIPT, b_score__py=SCRIPT)
    with pytest.raises(StartError, match=r"a_score.py and b_score.py could each be the script.*\(fix: name one"):
        discover(tmp_path)


# Deployment files


def repository(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGES / "azureml_repository", tmp_path / "repository"))


@pytest.mark.document("azureml.01", "azureml.45")
@pytest.mark.parametrize("path", ["", "blue-deployment.yml", "model-1", "model-1/onlinescoring"])
def test_a_repository_by_any_of_its_paths(tmp_path: Path, path: str) -> None:
    """Placeholders make the deployment no valid YAML."""
    root = repository(tmp_path)
    package = discover(root / path)
    assert package.script == root / "model-1" / "onlinescoring" / "score.py"
    assert package.environment["AZUREML_MODEL_DIR"] == str(root / "model-1")
    if path in ("", "blue-deployment.yml"):
        assert package.reasons[0].endswith("blue-deployment.yml:8 names score.py as scoring_script")
        assert (package.environment["THRESHOLD"], package.defaults["timeout"]) == ("0.5", 3)


def test_a_deployment_that_names_no_script_that_is_there(tmp_path: Path) -> None:
    root = repository(tmp_path)
    (root / "model-1" / "onlinescoring" / "score.py").unlink()
    with pytest.raises(StartError, match=r"blue-deployment.yml:8: there is no .*score.py, which it names"):
        discover(root / "blue-deployment.yml")


def test_two_deployments_of_different_scripts_are_a_question(tmp_path: Path) -> None:
    for colour in ("blue", "green"):
        write(tmp_path / colour)
        text = f"code_configuration:\n  code: {colour}\n  scoring_script: score.py\n"
        (tmp_path / f"{colour}.yml").write_text(text)
    with pytest.raises(StartError, match=r"blue.yml and green.yml deploy different scripts"):
        discover(tmp_path)
    assert discover(tmp_path / "green.yml").folder == tmp_path / "green"


def test_lines_of_a_deployment_that_is_no_yaml() -> None:
    text = "name: {{X}}\ncode_configuration:\n  code: src  # here\n  scoring_script: 'score.py'\nmodel:\n  path: m/\n"
    assert by_line(text) == {
        "name": "{{X}}",
        "code_configuration": {"code": "src", "scoring_script": "score.py"},
        "model": {"path": "m/"},
    }


def test_what_a_conda_file_asks_for_is_what_is_installed() -> None:
    conda = PACKAGES / "azureml_repository" / "model-1" / "environment" / "conda.yaml"
    wanted = ["numpy==1.23.5", "scikit-learn==1.2.2", "azureml-defaults==1.53.0"]
    assert [*conda_packages(conda), *pip_packages(conda)] == [*wanted, "inference-schema[numpy-support]==1.5.1"]
    package = discover(PACKAGES / "azureml_repository")
    assert package.installs == ((*wanted, "inference-schema[numpy-support]==1.5.1"),)


# The model


def model_dir(package: Package) -> str:
    return package.environment["AZUREML_MODEL_DIR"]


JOINING = (
    'import os\n{}\ndef init():\n    os.path.join(os.getenv("AZUREML_MODEL_DIR"), "{}")\ndef run(data):\n    pass\n'
)


@pytest.mark.document("azureml.04")
@pytest.mark.parametrize(
    ("joined", "file", "found"),
    [
        ("model/m.pkl", "model/m.pkl", ""),
        ("m.pkl", "model/m.pkl", "model"),
        ("m.pkl", "m.pkl", ""),
        ("models/m.pkl", "models/m.pkl", ""),
        ("model/m.pkl", "model-1/model/m.pkl", "model-1"),
        ("nowhere.pkl", "model/m.pkl", ""),
    ],
)
def test_the_models_folder_is_the_one_that_has_what_the_script_joins(
    tmp_path: Path, joined: str, file: str, found: str
) -> None:
    write(tmp_path, JOINING.format("", joined), **{file.replace("/", "___").replace(".", "__"): ""})
    package = discover(tmp_path)
    assert model_dir(package) == str(tmp_path / found)
    missing = [problem for problem in package.problems if "nowhere.pkl" in problem]
    assert bool(missing) == (joined == "nowhere.pkl")


def test_the_variable_and_the_flag_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write(tmp_path / "package", model___m__pkl="")
    monkeypatch.setenv("AZUREML_MODEL_DIR", str(tmp_path / "a"))
    assert model_dir(discover(package)) == str(tmp_path / "a")
    assert model_dir(discover(package, given={"model_dir": str(tmp_path / "b")})) == str(tmp_path / "b")


@pytest.mark.document("azureml.05", "azureml.53", "azureml.56")
def test_variables_of_the_platform_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write(tmp_path, config__json='{"SCORING_TIMEOUT_MS": 2000, "WORKER_COUNT": 2, "ODD": 1}')
    monkeypatch.setenv("WORKER_COUNT", "3")
    monkeypatch.setenv("WORKER_TIMEOUT", "300")
    monkeypatch.setenv("AML_CORS_ORIGINS", "https://a.example, https://b.example")
    without_effect = (
        "AML_APP_INSIGHTS_ENABLED", "SEPERATE_HEALTH_ENDPOINT", "AZUREML_DEBUG_PORT", "SERVER_PORT", "HEALTH_PORT",
    )  # fmt: skip
    for name in without_effect:
        monkeypatch.setenv(name, "5678")
    found = discover(package)
    assert (found.defaults["timeout"], found.defaults["workers"].least, found.defaults["run_timeout"]) == (2, 3, 300)
    assert found.defaults["cors_origin"] == ("https://a.example", "https://b.example")
    assert any("ODD" in problem for problem in found.problems)
    for name in without_effect:
        assert any(f"{name} has no effect here" in problem for problem in found.problems)


@pytest.mark.document("azureml.56")
@pytest.mark.parametrize(("text", "warned"), [("true", True), ("false", False), ("", False)])
def test_scripts_that_would_be_loaded_before_the_workers_are_warned_of(
    text: str, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write(tmp_path, config__json='{"WORKER_PRELOAD": true, "WORKER_COUNT": 2}' if warned else "")
    assert any("WORKER_PRELOAD has no effect here" in problem for problem in discover(package).problems) is warned
    (tmp_path / "config.json").unlink()
    monkeypatch.setenv("WORKER_PRELOAD", text)
    assert any("WORKER_PRELOAD has no effect here" in problem for problem in discover(package).problems) is warned


@pytest.mark.document("azureml.58")
def test_the_name_of_the_host_is_known_and_used_for_nothing(tmp_path: Path) -> None:
    assert discover(write(tmp_path, config__json='{"HOSTNAME": "a", "WORKER_COUNT": 2}')).problems == ()


def test_a_config_json_of_a_model_is_left_alone(tmp_path: Path) -> None:
    assert discover(write(tmp_path, config__json='{"architectures": ["Bert"]}')).problems == ()


# Wrong packages: one line with file, line and fix, and exit code 3

BATCH = "Azure ML batch endpoint, which Panglot does not serve: its run.. gets a list of files"
WRONG = {
    "def run(data):\n    return data\n# azureml\n": "score.py:1: User script .* does not have a init.. function",
    "def init():\n    pass\n# azureml\n": "score.py:1: User script at .* does not have a run.. function defined",
    "def init():\n    pass\ndef run(*data):\n    return 1\n": "score.py:3: run.. cannot accept positional-only",
    "def init():\n    pass\ndef run(**data):\n    return 1\n": "score.py:3: run.. cannot accept positional-only",
    "def init():\n    pass\ndef run(data, /):\n    return 1\n": "score.py:3: run.. cannot accept positional-only",
    "def init():\n    pass\ndef run():\n    return 1\n": "score.py:3: run.. needs to accept an argument for input data",
    "def init():\n    pass\ndef run(request_headers):\n    return 1\n": "an argument other than .request_headers.",
    "def init():\n    pass\nasync def run(data):\n    return 1\n": "score.py:3: run.. is async",
    "def init():\n    pass\n@rawhttp\n@input_schema('a', 1)\ndef run(a):\n    return 1\n": "both @rawhttp and @input",
    "def init():\n    pass\ndef run(mini_batch):\n    return 1\n": BATCH,
    "def init():\n    pass\ndef run(paths):\n    return [open(path).read() for path in paths]\n": BATCH,
    "def init(:\n    pass\n": "score.py:1: syntax error",
}


@pytest.mark.document("azureml.09", "azureml.12", "azureml.43")
@pytest.mark.parametrize(("script", "said"), WRONG.items(), ids=range(len(WRONG)))
def test_scripts_that_cannot_be_served(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(StartError, match=said) as caught:
        discover(write(tmp_path, script))
    assert caught.value.exit_code == 3
    assert caught.value.fix or "syntax" in said


@pytest.mark.parametrize("name", ["mini_batch.yml", "deployment.yml"])
def test_batch_deployments_are_refused(tmp_path: Path, name: str) -> None:
    kind = "$schema: https://azuremlschemas.azureedge.net/latest/batchDeployment.schema.json\n"
    write(tmp_path)
    (tmp_path / name).write_text(f"{kind}code_configuration:\n  code: .\n  scoring_script: score.py\n")
    with pytest.raises(StartError, match=BATCH):
        discover(tmp_path / name)


def test_the_command_ends_with_one_line_and_code_3() -> None:
    done = panglot("serve", str(PACKAGES / "broken" / "azureml_batch"), "--port", "0")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "batch_driver.py:11" in done.stderr
    assert "fix: serve a script of an online endpoint" in done.stderr


def test_a_loop_over_what_the_body_says_is_no_batch(tmp_path: Path) -> None:
    script = "def init():\n    pass\ndef run(data):\n    data = data.split()\n    return [x for x in data]\n"
    assert discover(write(tmp_path, script)).dialect == "azureml"
