"""`panglot export`: the package's own script is run, and what came out is tried."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from support.server import ROOT, panglot

PADDLE = """
import argparse, os
import paddle
from paddle import nn
from paddle.static import InputSpec

parser = argparse.ArgumentParser()
parser.add_argument("--save-inference-dir", default=".")
parser.add_argument("--img-size", type=int, default=32)
args = parser.parse_args()
net = nn.Sequential(nn.Conv2D(3, 2, 3), nn.Flatten(), nn.Linear(2 * (args.img_size - 2) ** 2, 5), nn.Softmax())
net.eval()
net = paddle.jit.to_static(net, input_spec=[InputSpec([None, 3, args.img_size, args.img_size], "float32")])
paddle.jit.save(net, os.path.join(args.save_inference_dir, "inference"))
"""
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
NAN = """
import onnx
from onnx import TensorProto, helper
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy")
graph = helper.make_graph([helper.make_node("Sub", ["x", "x"], ["z"]), helper.make_node("Div", ["z", "z"], ["y"])], "g", [x], [y])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "model.onnx")
"""  # noqa: E501


@pytest.mark.document("paddle.04")
@pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="paddlepaddle is not installed")
def test_a_model_of_paddle_is_exported_loaded_and_run(tmp_path: Path) -> None:
    """With the script in tools/, run in the package's folder as its documents say; into a folder it names."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "export_model.py").write_text(PADDLE)
    words = ("export", str(tmp_path), "--json", "--", "--save-inference-dir", "out", "--img-size=16")
    done = panglot(*words, seconds=110)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    (model,) = found["models"]
    names = {Path(name).name for name in model["files"]}
    assert names in ({"inference.json", "inference.pdiparams"}, {"inference.pdmodel", "inference.pdiparams"}) or (
        "inference.pdiparams.info" in names
    )
    assert all(Path(name).parent == (tmp_path / "out").resolve() for name in model["files"])
    assert [entry["declared"] for entry in model["inputs"]] == [[-1, 3, 16, 16]]
    assert [(entry["shape"], entry["dtype"], entry["finite"]) for entry in model["outputs"]] == [
        ([1, 5], "float32", True)
    ]


@pytest.mark.document("paddle.08")
@pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="paddlepaddle is not installed")
def test_paddles_older_form_on_request(tmp_path: Path) -> None:
    """The three files of the document; and a net that Paddle 3 cannot write so is told with what to do."""
    script = tmp_path / "export_model.py"
    script.write_text(PADDLE)
    done = panglot("export", str(tmp_path), "--pdmodel", "--json", seconds=110)
    assert done.returncode == 0, done.stdout + done.stderr
    [model] = json.loads(done.stdout)["models"]
    names = {Path(name).name for name in model["files"]}
    assert names == {"inference.pdmodel", "inference.pdiparams", "inference.pdiparams.info"}
    assert model["form"] == "Paddle, .pdmodel"
    assert [entry["declared"] for entry in model["inputs"]] == [[-1, 3, 32, 32]]
    script.write_text(PADDLE.replace("nn.Softmax()", "nn.Sigmoid()"))
    done = panglot("export", str(tmp_path), "--pdmodel", seconds=110)
    assert done.returncode == 1
    assert "leave out --pdmodel" in done.stderr.splitlines()[-1]


def test_a_model_of_onnx_is_told_in_words(tmp_path: Path) -> None:
    script = f"import shutil, sys\nassert sys.argv[1:] == ['--quick']\nshutil.copy({str(DIGITS)!r}, 'digits.onnx')\n"
    (tmp_path / "export.py").write_text(script)
    done = panglot("export", str(tmp_path), "--", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("exported in", "digits.onnx", "input   features  float32[-1, 64]", "output  ", "ran [1, 64] in"):
        assert words in done.stdout
    # What was there before is not what came out.
    (tmp_path / "export.py").write_text("print('nothing to do')\n")
    done = panglot("export", str(tmp_path))
    assert done.returncode == 1
    assert "wrote no model" in done.stderr
    assert "nothing to do" in done.stderr


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import no_such_module\n", "the export script ended with exit code 1"),
        ("import os\nos.kill(os.getpid(), 9)\n", "the export script ended with signal 9"),
        ("open('inference.pdiparams', 'w').close()\n", "which is no whole model"),
        ("open('broken.onnx', 'w').write('no model')\n", "it does not load or run"),
        (NAN, "holds NaN or infinity"),
    ],
)
def test_what_goes_wrong_has_an_exit_code(tmp_path: Path, script: str, said: str) -> None:
    (tmp_path / "export_model.py").write_text(script)
    done = panglot("export", str(tmp_path), seconds=110)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_wrong_uses_are_told_in_one_line(tmp_path: Path) -> None:
    shutil.copy(DIGITS, tmp_path)
    for words, said in (
        ((str(tmp_path),), "there is no export script"),
        ((str(tmp_path / "nowhere"),), "does not exist"),
        ((str(tmp_path / DIGITS.name),), "this is no export script"),
        ((str(tmp_path), "--python", "/bin/false"), "there is no export script"),
    ):
        done = panglot("export", *words)
        assert done.returncode == 3
        assert said in done.stderr.splitlines()[-1]
    (tmp_path / "export.py").touch()
    done = panglot("export", str(tmp_path), "--python", "/bin/false")
    assert done.returncode == 3
    assert "is no Python interpreter" in done.stderr
