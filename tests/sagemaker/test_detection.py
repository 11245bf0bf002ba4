"""What is taken for a package of SageMaker, which file is its script, and which container it was written for."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from panglot.dialects import discover
from panglot.errors import StartError
from support.server import PACKAGES, panglot, serving

SCRIPT = "def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(data, model):\n    return data\n"


def write(folder: Path, text: str = SCRIPT, name: str = "code/inference.py") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


@pytest.mark.document("sagemaker.01")
def test_an_archive_is_served_as_its_folder_is(tmp_path: Path) -> None:
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(PACKAGES / "sagemaker_ops", ".")
    with serving(archive, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as server:
        answer = server.client.post("/invocations", json={"op": "sum", "values": [1, 2]})
        assert (answer.status_code, answer.json()) == (200, 12)


def test_an_archive_that_is_no_package_is_named_not_the_folder_it_was_unpacked_in(tmp_path: Path) -> None:
    write(tmp_path / "wrong", "x = 1\n")
    (tmp_path / "archives").mkdir()
    archive = tmp_path / "archives" / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(tmp_path / "wrong", ".")
    with pytest.raises(StartError) as caught:
        discover(archive, "sagemaker")
    assert caught.value.file == str(archive)
    with pytest.raises(StartError, match=r"no script in this folder, but an archive, model.tar.gz") as caught:
        discover(tmp_path / "archives")
    assert caught.value.fix.endswith("archives/model.tar.gz")


def test_what_fails_in_an_archive_is_told_by_its_path_in_the_archive(tmp_path: Path) -> None:
    script = "def model_fn(model_dir):\n    open(model_dir + '/weights.pt')\n"
    write(tmp_path / "wrong", script + "\n\ndef predict_fn(data, model):\n    return data\n")
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(tmp_path / "wrong", ".")
    for flags in ((), ("--entry-point", "code/inference.py")):
        env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = panglot("serve", str(archive), "--port", "0", *flags, env=env)
        missing = f"No such file or directory: '{archive}/weights.pt'"
        told = f"{archive}/code/inference.py:2: running model_fn failed: FileNotFoundError: [Errno 2] {missing}"
        assert (done.returncode, told in done.stderr) == (3, True), done.stderr
        assert str(tmp_path / "cache") not in done.stderr


@pytest.mark.document("sagemaker.01")
@pytest.mark.parametrize("name", ["code/inference.py", "inference.py", "src/inference.py", "code/serve.py", "train.py"])
def test_a_folder_with_a_script(tmp_path: Path, name: str) -> None:
    package = discover(write(tmp_path, name=name))
    assert (package.dialect, package.script, package.root) == ("sagemaker", tmp_path / name, tmp_path)
    assert discover(tmp_path / name).script == tmp_path / name


@pytest.mark.document("sagemaker.03")
def test_the_folder_of_the_model(tmp_path: Path) -> None:
    assert discover(write(tmp_path / "a")).options["model_dir"] == str(tmp_path / "a")
    source = write(tmp_path / "b", name="inference.py")
    assert discover(source).options["model_dir"] == str(source)
    (source / "model").mkdir()
    assert discover(source).options["model_dir"] == str(source / "model")
    assert discover(source, given={"model_data": str(tmp_path / "a")}).options["model_dir"] == str(tmp_path / "a")


@pytest.mark.document("sagemaker.02")
def test_the_script_that_a_variable_or_a_flag_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(write(tmp_path), name="code/other.py")
    assert discover(tmp_path).script.name == "inference.py"
    assert discover(tmp_path, given={"entry_point": "other.py"}).script.name == "other.py"
    monkeypatch.setenv("SAGEMAKER_PROGRAM", "other")
    package = discover(tmp_path)
    assert (package.script.name, package.environment["SAGEMAKER_PROGRAM"]) == ("other.py", "other.py")


def test_two_scripts_of_which_none_has_the_usual_name(tmp_path: Path) -> None:
    write(write(tmp_path, name="one.py"), name="two.py")
    with pytest.raises(StartError, match=r"one.py and two.py could each be the script"):
        discover(tmp_path)


@pytest.mark.document("sagemaker.37")
@pytest.mark.parametrize("arguments", ["features, labels, mode", "features, labels, mode, params"])
def test_estimators_of_tensorflow_are_something_else(tmp_path: Path, arguments: str) -> None:
    write(tmp_path, f"def model_fn({arguments}):\n    return 1\n", "train.py")
    with pytest.raises(StartError):
        discover(tmp_path)


FLAVORS = {
    "import torch": "pytorch",
    "import torch\nfrom transformers import pipeline": "huggingface",
    "import xgboost as xgb\nfrom sklearn.metrics import accuracy_score": "xgboost",
    "import joblib": "sklearn",
    "from sagemaker_containers.beta.framework import worker": "sklearn",
    "import numpy": "generic",
}


@pytest.mark.parametrize(("line", "flavor"), FLAVORS.items())
def test_imports_tell_the_container_and_a_flag_names_another(tmp_path: Path, line: str, flavor: str) -> None:
    write(tmp_path, f"{line}\n\n{SCRIPT}")
    assert discover(tmp_path).options["flavor"] == flavor
    assert discover(tmp_path, given={"flavor": "generic"}).options["flavor"] == "generic"


def test_requirements_and_files_tell_the_container(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "model.pth").touch()
    assert discover(tmp_path).options["flavor"] == "pytorch"
    (tmp_path / "code" / "requirements.txt").write_text("scikit-learn==1.5\n")
    assert discover(tmp_path).options["flavor"] == "sklearn"


def test_weights_alone_need_the_flag(tmp_path: Path) -> None:
    (tmp_path / "model.pt").touch()
    with pytest.raises(StartError, match="this is no sagemaker package"):
        discover(tmp_path, "sagemaker")
    assert discover(tmp_path, given={"flavor": "pytorch"}).dialect == "sagemaker"


@pytest.mark.document("sagemaker.36")
def test_variables_of_the_platform_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEMAKER_MODEL_SERVER_WORKERS", "3")
    monkeypatch.setenv("SAGEMAKER_MODEL_SERVER_TIMEOUT", "20")
    monkeypatch.setenv("SAGEMAKER_BIND_TO_PORT", "9090")
    monkeypatch.setenv("SAGEMAKER_MAX_PAYLOAD_IN_MB", "7")
    defaults = discover(write(tmp_path)).defaults
    assert (defaults["timeout"], defaults["port"], defaults["max_body"]) == (20.0, 9090, 7 << 20)
    monkeypatch.setenv("SAGEMAKER_MODEL_SERVER_WORKERS", "many")
    with pytest.raises(StartError, match="SAGEMAKER_MODEL_SERVER_WORKERS=many"):
        discover(tmp_path)


@pytest.mark.document("sagemaker.03")
def test_fixed_paths_lead_to_the_model(tmp_path: Path) -> None:
    package = discover(PACKAGES / "sagemaker_source")
    assert [(path.text, path.root, path.inside) for path in package.fixed_paths] == [
        ("/opt/ml/model/note.txt", "/opt/ml/model", "model")
    ]
    assert not discover(PACKAGES / "sagemaker_training").fixed_paths, "training alone uses it"


WRONG = {
    "both": (SCRIPT + "\n\ndef transform_fn(model, data, content_type, accept):\n    return data\n", 9,
             "Cannot use transform_fn implementation in conjunction with"),
    "count": ("def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(data):\n    return data\n", 5,
              "predict_fn takes 1 arguments but 2 were given."),
    "args": ("def model_fn(model_dir):\n    return 1\n\n\ndef predict_fn(*args):\n    return 1\n", 5,
             "predict_fn takes 1 arguments but 2 were given."),
    "async": ("def model_fn(model_dir):\n    return 1\n\n\nasync def predict_fn(data, model):\n    return data\n", 5,
              "predict_fn is async"),
    "no predict_fn": ("def model_fn(model_dir):\n    return 1\n", 1, "Please provide a predict_fn implementation."),
    "no model_fn": ("def predict_fn(data, model):\n    return 1\n", 1, "Please provide a model_fn implementation."),
}  # fmt: skip


@pytest.mark.document("sagemaker.07", "sagemaker.08")
@pytest.mark.parametrize("name", WRONG)
def test_a_script_that_cannot_work_is_refused_with_file_line_and_fix(tmp_path: Path, name: str) -> None:
    text, line, sentence = WRONG[name]
    write(tmp_path, text)
    with pytest.raises(StartError) as caught:
        discover(tmp_path)
    assert sentence in str(caught.value)
    assert (caught.value.line, bool(caught.value.fix)) == (line, True)


def test_code_that_deploys_a_pipeline_is_told_how_to_serve_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from sagemaker.pipeline import PipelineModel\n\n\ndef deploy(models, role):\n"
        "    PipelineModel(name='two', role=role, models=models).deploy(1, 'ml.c5.xlarge')\n",
        "deploy.py",
    )
    done = panglot("serve", str(tmp_path))
    assert done.returncode == 3
    assert "deploy.py:5: this deploys an inference pipeline of SageMaker" in done.stderr
    assert "pipeline.json" in done.stderr


@pytest.mark.document("sagemaker.03")
def test_a_fixed_path_is_a_warning_with_the_fix() -> None:
    with serving("sagemaker_source") as server:
        server.wait_log("--link-paths makes /opt/ml/model lead to this package")
        assert server.client.post("/invocations", json=[]).json() == {"label": "dog", "note": "no note"}


def test_a_model_fn_that_raises_ends_the_start(tmp_path: Path) -> None:
    write(tmp_path, SCRIPT.replace("return 1", "raise OSError('no weights')"))
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "no weights" in done.stderr
    assert "inference.py:2" in done.stderr


def test_settings_of_the_package_choose_the_container(tmp_path: Path) -> None:
    folder = tmp_path / "chosen"
    shutil.copytree(PACKAGES / "sagemaker_defaults", folder)
    (folder / "panglot.toml").write_text('flavor = "huggingface"\n')
    with serving(folder) as server:
        answer = server.client.post("/invocations", content="x", headers={"Content-Type": "text/plain"})
        assert (answer.status_code, answer.json()["code"]) == (400, 400)
