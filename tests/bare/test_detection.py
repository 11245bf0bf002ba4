"""What is a model file, and what is another dialect's."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support import model_files
from support.server import PACKAGES, ROOT

SCRIPTS = {
    "model.py": "def predict(request):\n    return 1\n",
    "serve.py": "class Model:\n    def predict(self, item):\n        return 1\n",
    "model_service.py": "import tiinfer\n\nclass M(tiinfer.Model):\n    def predict(self, r):\n        return r\n",
    "customize_service.py": "from model_service.pytorch_model_service import PTServingBaseService\n\n"
    "class S(PTServingBaseService):\n    pass\n",
}


def test_a_file_and_a_folder_with_one(tmp_path: Path) -> None:
    path = model_files.dynamic(tmp_path / "net.onnx")
    for given, name in ((path, "net"), (tmp_path, tmp_path.name)):
        package = dialects.discover(given)
        assert (package.dialect, package.name, package.script) == ("bare", name, path)
        assert package.options["kind"] == "onnx"
    (tmp_path / "train.py").write_text("import torch\n\ndef main():\n    pass\n")
    assert dialects.discover(tmp_path).dialect == "bare"


@pytest.mark.parametrize("name", SCRIPTS)
def test_weights_beside_a_script_are_that_scripts(name: str, tmp_path: Path) -> None:
    path = model_files.dynamic(tmp_path / "net.onnx")
    (tmp_path / name).write_text(SCRIPTS[name])
    assert dialects.discover(tmp_path).dialect != "bare"
    assert dialects.discover(path).dialect == "bare"
    assert dialects.discover(tmp_path, "bare" if name == "model_service.py" else "").dialect


def test_no_package_of_another_dialect_is_taken() -> None:
    folders = [folder for folder in sorted((ROOT / "examples").iterdir()) if folder.name not in ("bare", "triton")]
    assert {dialects.discover(folder).dialect for folder in folders if folder.name != "megflow"} >= {"plain", "tiinfer"}
    for folder in folders:
        if folder.name != "megflow":
            assert dialects.discover(folder).dialect != "bare", folder


def test_a_script_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    model_files.dynamic(tmp_path / "net.onnx")
    (tmp_path / "model.py").write_text("def predict(:\n")
    with pytest.raises(StartError, match="syntax error"):
        dialects.discover(tmp_path)


def test_several_models_are_one_clear_error(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        model_files.dynamic(tmp_path / name)
    with pytest.raises(StartError, match=r"a.onnx and b.onnx could each be the model") as raised:
        dialects.discover(tmp_path)
    assert raised.value.fix.startswith("name one: panglot serve ")


def test_kinds_by_name_and_content(tmp_path: Path) -> None:
    """Also a SavedModel, which is another platform's only with its configuration beside it."""
    saved = tmp_path / "saved" / "3"
    saved.mkdir(parents=True)
    (saved / "saved_model.pb").write_bytes(b"\x08\x01")
    assert (dialects.discover(saved).options["kind"], dialects.discover(saved).name) == ("savedmodel", "saved")
    (saved / "config.json").write_text('{"model_type": "TensorFlow", "model_algorithm": "x"}')
    assert dialects.discover(saved).dialect == "modelarts"
    paddle = dialects.discover(ROOT / "examples" / "paddle" / "inference")
    assert (paddle.dialect, paddle.options["kind"]) == ("bare", "paddle")
    for name, content, kind in (
        ("m.json", '{"learner":{}}', "xgboost"), ("m.bst", "tree\nversion=v4", "lightgbm"), ("m.bst", "{L", "xgboost"),
        ("m.txt", "tree\nversion=v4", "lightgbm"), ("m.pkl", "x", "sklearn"),
    ):  # fmt: skip
        folder = tmp_path / f"{kind}-{name}"
        folder.mkdir()
        (folder / name).write_text(content)
        (folder / "requirements.txt").write_text("numpy\n")
        assert dialects.discover(folder).options["kind"] == kind


def test_files_that_cannot_work_are_refused_at_once(tmp_path: Path) -> None:
    torchscript = tmp_path / "scripted.pt"
    with zipfile.ZipFile(torchscript, "w") as archive:
        archive.writestr("scripted/code/__torch__.py", "")
    weights = tmp_path / "weights.pt"
    with zipfile.ZipFile(weights, "w") as archive:
        archive.writestr("weights/data.pkl", "")
    (tmp_path / "cut.pt").write_bytes(torchscript.read_bytes()[:30])
    (tmp_path / "empty.onnx").touch()
    for name, said in (
        ("scripted.pt", "does not say what it takes"), ("weights.pt", "holds weights and no model"),
        ("cut.pt", "not a complete archive"), ("empty.onnx", "the file is empty"),
    ):  # fmt: skip
        with pytest.raises(StartError, match=said) as raised:
            dialects.discover(tmp_path / name)
        assert raised.value.fix


@pytest.mark.parametrize(
    ("name", "what"),
    [("model.plan", "a TensorRT engine"), ("model.graphdef", "TensorFlow 1"), ("model.xml", "an OpenVINO model")],
)
def test_models_of_other_runtimes_are_named(name: str, what: str, tmp_path: Path) -> None:
    """In the layout of Triton or OpenVINO Model Server; a script beside one may load it."""
    (tmp_path / name).write_text("x")
    (tmp_path / "model.bin").write_text("x")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(StartError, match=what) as raised:
            dialects.discover(path)
        assert raised.value.fix == "export it as ONNX, or serve a script that loads it"
    (tmp_path / "model.py").write_text(SCRIPTS["model.py"])
    assert dialects.discover(tmp_path).dialect == "plain"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('inputs = 1', "inputs is a list of tables"),
        ('[[inputs]]\nname = "x"\nshapes = [1]', "unknown key 'shapes'"),
        ('[[inputs]]\nname = "x"\ndatatype = "float"', "datatype in .* must be one of BOOL"),
        ('[[inputs]]\nshape = [1]', "has no name"),
        ('[[inputs]]\nname = "x"\nstd = [0]', "std in .* must be"),
    ],
)  # fmt: skip
def test_declared_inputs_are_checked(text: str, said: str, tmp_path: Path) -> None:
    path = model_files.dynamic(tmp_path / "net.onnx")
    (tmp_path / "panglot.toml").write_text(text)
    with pytest.raises(StartError, match=said) as raised:
        dialects.discover(path)
    assert raised.value.line


def test_plain_packages_stay_plain() -> None:
    assert dialects.discover(PACKAGES / "batch").dialect == "plain"
