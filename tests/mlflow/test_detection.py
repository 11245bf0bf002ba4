"""Which folders are models of MLflow, what is read of them, and what is refused: by their files alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from panglot import dialects
from panglot.errors import StartError
from panglot.packages.package import Package
from support.server import PACKAGES, panglot

FLAVOR = """
flavors:
  python_function:
    loader_module: mlflow.sklearn
    model_path: model.pkl
"""


def model(folder: Path, text: str = FLAVOR, **files: str) -> Path:
    """A model's folder; `__` in the names of its files stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MLmodel").write_text(text)
    for name, content in {"model__pkl": "x", **files}.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


def example_of(package: Package) -> Any:
    return (package.options["api"]["example"] or {}).get("value")


@pytest.mark.document("mlflow.01")
def test_the_folder_its_marker_and_a_parent(tmp_path: Path) -> None:
    folder = model(tmp_path / "project" / "mlruns" / "0" / "abc" / "artifacts" / "model")
    for path in (folder, folder / "MLmodel", tmp_path / "project", tmp_path / "project" / "mlruns"):
        package = dialects.discover(path)
        assert package.dialect == "mlflow"
        assert package.folder == folder
    assert dialects.discover(tmp_path / "project").name == "project"
    assert dialects.discover(folder / "MLmodel").name == "model"
    assert "mlruns/0/abc/artifacts/model/MLmodel:3" in dialects.discover(tmp_path / "project").reasons[0]


def test_a_repository_with_the_training_script() -> None:
    package = dialects.discover(PACKAGES / "mlflow_repository")
    assert package.dialect == "mlflow"
    assert package.script.name == "model.py"


def test_several_models_are_listed(tmp_path: Path) -> None:
    model(tmp_path / "a")
    model(tmp_path / "b")
    with pytest.raises(StartError) as refusal:
        dialects.discover(tmp_path)
    assert "several MLflow models here: a and b" in refusal.value.problem
    assert "panglot serve" in refusal.value.fix


@pytest.mark.parametrize(
    ("script", "dialect"),
    [
        ("model.py:def predict(x): return x", "plain"),
        ("handler.py:class EndpointHandler:\n    def __init__(self, path=''): pass\n    def __call__(self, data): pass",
         "hfendpoint"),
        ("score.py:# azureml\ndef init(): pass\ndef run(raw_data): pass", "azureml"),
    ],
)  # fmt: skip
def test_models_below_a_script_that_is_served_itself_are_what_it_uses(
    script: str, dialect: str, tmp_path: Path
) -> None:
    name, _, text = script.partition(":")
    (tmp_path / name).write_text(text)
    model(tmp_path / "mlruns" / "a")
    model(tmp_path / "mlruns" / "b")
    assert dialects.discover(tmp_path).dialect == dialect


def test_a_scoring_script_beside_the_marker_wins(tmp_path: Path) -> None:
    model(tmp_path, score__py="# azureml\ndef init(): pass\ndef run(raw_data): pass")
    assert dialects.discover(tmp_path).dialect == "azureml"
    (tmp_path / "score.py").write_text("def helper(): pass")
    assert dialects.discover(tmp_path).dialect == "mlflow"


WRONG = {
    "no python_function": ("flavors:\n  crate: {version: 1}\n", "MLmodel:1", "its flavors: crate"),
    "no flavors": ("run_id: 3\n", "MLmodel:1", "its flavors: none"),
    "no loader": ("flavors:\n  python_function:\n    env: conda.yaml\n", "MLmodel:2", "no loader_module"),
    "no YAML": ("flavors: [\n", "MLmodel:", "not valid YAML"),
    "an absent file": (FLAVOR.replace("model.pkl", "gone.pkl"), "MLmodel:5", "names gone.pkl"),
    "a path of Windows": (
        FLAVOR + "    artifacts:\n      words:\n        path: artifacts\\words.txt\n",
        "MLmodel:8",
        "a path of Windows",
    ),
    "a signature that is no JSON": (FLAVOR + "signature:\n  inputs: '[{'\n", "MLmodel:7", "signature.inputs"),
    "an absent script": (
        "flavors:\n  python_function:\n    loader_module: mlflow.pyfunc.model\n    model_code_path: x/gone.py\n",
        "MLmodel:4",
        "names gone.py",
    ),
    "Java": (FLAVOR.replace("mlflow.sklearn", "mlflow.spark"), "MLmodel:4", "a model of Spark, which needs Java"),
}


@pytest.mark.document("mlflow.02", "mlflow.20")
@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_loaded_is_refused_with_its_line_and_a_fix(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    text, where, said = WRONG[case]
    with pytest.raises(StartError) as refusal:
        dialects.discover(model(tmp_path, text))
    assert said in refusal.value.problem
    assert f"{refusal.value.file}:{refusal.value.line}".endswith(where) or where.endswith(":")
    assert refusal.value.fix or case == "no YAML"


@pytest.mark.document("mlflow.20")
def test_pointers_of_git_lfs_are_refused(tmp_path: Path) -> None:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with pytest.raises(StartError) as refusal:
        dialects.discover(model(tmp_path, model__pkl=text))
    assert refusal.value.fix == "run git lfs pull"


def test_a_refusal_on_the_command_line(tmp_path: Path) -> None:
    done = panglot("serve", str(model(tmp_path, "flavors:\n  crate: {version: 1}\n")))
    assert done.returncode == 3
    assert "MLmodel:1" in done.stderr
    assert "python_function" in done.stderr


def test_an_interpreter_without_mlflow_is_named_with_the_fix() -> None:
    done = panglot("serve", str(PACKAGES / "mlflow_any"))
    if "is ready" in done.stderr:
        pytest.skip("mlflow is installed here")
    assert done.returncode == 3
    assert "pip install mlflow-skinny pandas" in done.stderr
    assert "--python" in done.stderr


# The signature


@pytest.mark.document("mlflow.25")
def test_the_saved_request_is_the_example_as_rows_with_names() -> None:
    package = dialects.discover(PACKAGES / "mlflow_signature")
    rows = [{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 3.0}]
    assert example_of(package) == {"dataframe_records": rows, "params": {"t": 0.5}}
    schema = package.options["api"]["request_schema"]
    row = schema["properties"]["dataframe_records"]["items"]
    assert row["properties"] == {"x": {"type": "number"}, "y": {"type": "number"}}
    assert row["required"] == ["x", "y"]
    assert schema["properties"]["params"]["properties"] == {"t": {"type": "number", "default": 0.5}}
    answered = package.options["api"]["response_schema"]
    assert answered["properties"]["predictions"] == {"type": "array", "items": {"type": "number"}}


@pytest.mark.document("mlflow.25")
def test_an_example_is_made_from_the_signature() -> None:
    made = example_of(dialects.discover(PACKAGES / "mlflow_types"))["dataframe_records"][0]
    assert made["n"] == 1
    assert made["list"] == [1.0]
    assert made["inner"] == {"k": 1}
    assert example_of(dialects.discover(PACKAGES / "mlflow_tensor")) == {"inputs": [[1.0, 1.0, 1.0]]}
    assert example_of(dialects.discover(PACKAGES / "mlflow_hints")) == {"inputs": ["text"]}
    assert example_of(dialects.discover(PACKAGES / "mlflow_any")) is None


def test_a_chat_is_described_as_it_is_sent() -> None:
    api = dialects.discover(PACKAGES / "mlflow_chat").options["api"]
    assert set(api["request_schema"]["properties"]) == {"messages", "temperature"}
    assert "messages" in api["example"]["value"]
    assert "predictions" not in str(api["response_schema"])


@pytest.mark.document("mlflow.25")
def test_an_input_example_of_an_older_mlflow(tmp_path: Path) -> None:
    text = (
        FLAVOR
        + "saved_input_example_info: {artifact_path: input_example.json, type: dataframe, pandas_orient: split}\n"
    )
    content = json.dumps({"columns": ["a"], "data": [[1]]})
    assert example_of(dialects.discover(model(tmp_path, text, input_example__json=content))) == {
        "dataframe_split": {"columns": ["a"], "data": [[1]]}
    }


# Variables


@pytest.mark.document("mlflow.17")
def test_variables_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT", "7")
    monkeypatch.setenv("SERVING_MODEL_CONFIG", '{"shout": true}')
    package = dialects.discover(PACKAGES / "mlflow_artifacts")
    assert package.defaults["timeout"] == 7
    assert package.options["model_config"] == {"shout": True}
    assert package.environment["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.parametrize(
    ("name", "text"),
    [("SERVING_MODEL_CONFIG", "{"), ("SERVING_MODEL_CONFIG", "[1]"), ("MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT", "soon")],
)
def test_variables_that_cannot_be_used(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(StartError) as refusal:
        dialects.discover(PACKAGES / "mlflow_any")
    assert name in refusal.value.problem
    assert refusal.value.fix


@pytest.mark.document("mlflow.21")
def test_a_conda_file_has_a_list_of_pip_and_packages_that_conda_alone_installs(tmp_path: Path) -> None:
    folder = shutil.copytree(PACKAGES / "mlflow_any", tmp_path / "saved")
    (folder / "conda.yaml").write_text(
        "channels: [conda-forge]\ndependencies:\n- python=3.11.7\n- pip<=24.0\n- conda-forge::libgomp=13.2\n"
        "- pip:\n  - mlflow==3.17.2\n  - pandas<4\nname: mlflow-env\n"
    )
    package = dialects.discover(folder)
    assert package.installs == (("mlflow==3.17.2", "pandas<4"),)
    assert "conda.yaml asks conda for libgomp==13.2" in package.problems[0]
    (folder / "requirements.txt").write_text("mlflow==3.17.2\n")
    assert dialects.discover(folder).installs == (), "requirements.txt says the same"
