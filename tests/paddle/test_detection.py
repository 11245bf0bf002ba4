"""What a script is and does, read from its source alone."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from panglot.dialects import discover
from panglot.dialects.paddle.detect import arrange, detect
from panglot.dialects.paddle.settings import Settings
from panglot.errors import StartError
from panglot.packages.package import Package
from support.paddle import ALEXNET
from support.server import PACKAGES

ENGINE = """
import argparse
import paddle

class InferenceEngine:
    def __init__(self, args):
        self.args = args
    def preprocess(self, x):
        return x
    def run(self, x):
        return x
    def postprocess(self, x):
        return x
"""
PARSER = """
def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--img-path", default="demo.jpg")
    parser.add_argument("--output-path", default="out")
    parser.add_argument("--scale", type=float, default=1.5, help="how much")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()
"""


def package(folder: Path, text: str) -> Package:
    (folder / "infer.py").write_text(ENGINE + PARSER + textwrap.dedent(text))
    found = discover(folder)
    assert found.dialect == "paddle"
    return found


DIRECT = """
def infer_main(args):
    engine = InferenceEngine(args)
    img = engine.preprocess(args.img_path)
    output = engine.run(img)
    label, score = engine.postprocess(output)
    print(label)
    return label, score
"""


@pytest.mark.document("paddle.11")
def test_steps_passed_on_unchanged_are_called_directly(tmp_path: Path) -> None:
    found = package(tmp_path, DIRECT)
    assert found.entry == "InferenceEngine"
    assert found.options["shape"] == "engine"
    assert found.options["names"] == ["label", "score"]
    assert [one["name"] for one in found.options["inputs"]] == ["img_path"]
    assert "passes preprocess, run and postprocess on" in found.reasons[1]


CHANGES = [
    ("output = engine.run(img)", "output = engine.run(img)\n    output = output.reshape(-1)"),
    ("img = engine.preprocess(args.img_path)", "img = engine.preprocess(args.img_path)[0]"),
    ("label, score = engine.postprocess(output)", "label, score = engine.postprocess(output, args.scale)"),
    ("label, score = engine.postprocess(output)", "label, score = engine.postprocess(output.numpy())"),
    ("output = engine.run(img)", "img[0] = 1\n    output = engine.run(img)"),
    ("return label, score", "return label, score * 2"),
    ("    output = engine.run(img)", "    for one in img:\n        output = engine.run(img)"),
    ("engine.preprocess(args.img_path)", "engine.preprocess(args.img_path, 3)"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=range(len(CHANGES)))
def test_a_driver_that_does_more_is_called_itself(tmp_path: Path, old: str, new: str) -> None:
    assert old in DIRECT
    found = package(tmp_path, DIRECT.replace(old, new))
    assert found.entry == "infer_main", found.reasons
    assert found.options["shape"] == "driver"
    assert "is called for a request, with one engine" in found.reasons[1]
    assert [one["name"] for one in found.options["inputs"]] == ["img_path"], "outputs and numbers are no inputs"


def test_a_driver_that_lists_a_folder_gets_one(tmp_path: Path) -> None:
    text = """
    def infer_main(args):
        engine = InferenceEngine(args)
        for name in os.listdir(args.img_path):
            result = engine.postprocess(engine.run(engine.preprocess(name)))
        return result
    """
    assert package(tmp_path, text).options["inputs"] == [{"name": "img_path", "kind": "folder", "picture": True}]


def test_a_driver_without_input(tmp_path: Path) -> None:
    text = ENGINE + "def infer_main(args):\n    return InferenceEngine(args).run(args.scale)\n"
    (tmp_path / "infer.py").write_text(text)
    with pytest.raises(StartError, match=r"infer.py:\d+: none of the script's arguments looks like the input"):
        discover(tmp_path)


KEPT = [
    ("def preprocess(self, x):", "def preprocess(self, x):\n        self.size = x.size", "return self.size"),
    (
        "def preprocess(self, x):",
        "def preprocess(self, x):\n        self.sizes.append(x.size)",
        "return self.sizes[-1]",
    ),
    ("def preprocess(self, x):", "def preprocess(self, x):\n        self.found['a'] = x", "return self.found"),
    ("def preprocess(self, x):", "def preprocess(self, x):", "return open(self.args.img_path)"),
]


@pytest.mark.parametrize(("old", "new", "returned"), KEPT, ids=range(len(KEPT)))
def test_what_steps_leave_for_one_another_forbids_batches(tmp_path: Path, old: str, new: str, returned: str) -> None:
    """Of two requests in one batch, the first would be answered with what the second left."""
    assert package(tmp_path, DIRECT).options["single"] == ""
    head, _, tail = ENGINE.replace(old, new).rpartition("return x")
    (tmp_path / "infer.py").write_text(head + returned + tail + PARSER + DIRECT)
    assert discover(tmp_path).options["single"] != ""


def test_names_come_from_where_the_result_is_used(tmp_path: Path) -> None:
    text = """
    def main(args):
        engine = InferenceEngine(args)
        return [engine.run(engine.preprocess(args.img_path)), 1]

    if __name__ == "__main__":
        heat, count = main(get_args())
    """
    found = package(tmp_path, text)
    assert found.entry == "main"
    assert found.options["names"] == ["heat", "count"]


def test_a_result_of_one_value_has_one_name(tmp_path: Path) -> None:
    found = package(tmp_path, DIRECT.replace("label, score", "polygons"))
    assert found.options["names"] == ["polygons"]


def test_arguments_are_shown_with_types_and_defaults(tmp_path: Path) -> None:
    found = package(tmp_path, DIRECT)
    assert found.facts["argument"] == [
        "--img-path (str, default 'demo.jpg')",
        "--output-path (str, default 'out')",
        "--scale (float, default 1.5)  how much",
        "--quiet (switch, default False)",
    ]


def test_an_argument_the_script_does_not_have(tmp_path: Path) -> None:
    found = package(tmp_path, DIRECT)
    arranged = arrange(replace(found, "--sca", "2", "--quiet"), Settings())
    assert arranged.arguments == ("--sca", "2", "--quiet"), "argparse takes what is unambiguous"
    with pytest.raises(StartError, match="no argument --scael.*did you mean --scale"):
        arrange(replace(found, "--scael", "2"), Settings())


def replace(found: Package, *arguments: str) -> Package:
    import dataclasses

    return dataclasses.replace(found, arguments=arguments)


def test_paths_mean_where_they_were_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    found = package(there, DIRECT)
    (here / "a.jpg").write_bytes(b"")
    monkeypatch.chdir(here)
    assert arrange(replace(found, "--img-path", "a.jpg"), Settings()).arguments == ("--img-path", str(here / "a.jpg"))
    assert arrange(replace(found, "--img-path=a.jpg"), Settings()).arguments == (f"--img-path={here / 'a.jpg'}",)
    assert arrange(replace(found, "--img-path", "b.jpg"), Settings()).arguments == ("--img-path", "b.jpg")
    assert arrange(found, Settings()).arguments == ()
    (here / "demo.jpg").write_bytes(b"")
    assert arrange(found, Settings()).arguments == ("--img-path", str(here / "demo.jpg")), "a default, from here"
    (there / "demo.jpg").write_bytes(b"")
    assert arrange(found, Settings()).arguments == (), "a default, from the script's folder"


@pytest.mark.parametrize(("cwd", "folder"), [("", ""), ("deploy", "deploy"), ("..", "")])
def test_a_script_runs_in_the_project_unless_somebody_is_further_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, folder: str
) -> None:
    """Folders above the current one are not the project's."""
    root = tmp_path / "project"
    (root / "deploy").mkdir(parents=True)
    (root / "configs").mkdir()
    (root / "configs" / "a.yml").write_text("")
    (root / "deploy" / "infer.py").write_text(ENGINE + PARSER + 'CONFIG = "configs/a.yml"\n' + DIRECT)
    monkeypatch.chdir(root / cwd)
    found = discover(root / "deploy" / "infer.py")
    assert (found.folder, found.name) == (root / folder, "deploy")


def test_the_folder_of_the_model(tmp_path: Path) -> None:
    text = (
        DIRECT
        + '\ndef more(p):\n    p.add_argument("--model-dir", default=None)\n    return p.parse_args().model_dir\n'
    )
    found = package(tmp_path, text)
    with pytest.raises(StartError, match="--model-dir is not given.*-- --model-dir FOLDER"):
        arrange(found, Settings())
    with pytest.raises(StartError, match="--model-dir nowhere does not exist"):
        arrange(replace(found, "--model-dir", "nowhere"), Settings())
    (tmp_path / "out").mkdir()
    with pytest.raises(StartError, match=r"no exported model in .*out: neither \*.pdmodel nor \*.json"):
        arrange(replace(found, "--model-dir", "out"), Settings())
    (tmp_path / "out" / "inference.json").write_text("{}")
    (tmp_path / "out" / "inference.pdiparams").write_text("")
    arranged = arrange(found, Settings())
    assert arranged.arguments == ("--model-dir", str(tmp_path / "out"))
    assert "is not given: the exported model in" in arranged.reasons[-1]


def test_entry_overrides(tmp_path: Path) -> None:
    found = package(tmp_path, DIRECT)
    driven = arrange(found, Settings(entry="infer_main"))
    assert driven.entry == "infer_main"
    assert driven.options["shape"] == "driver"
    assert driven.options["names"] == ["label", "score"]
    assert arrange(found, Settings(entry="InferenceEngine")).options["shape"] == "engine"
    with pytest.raises(StartError, match="--entry infer_mian.*did you mean infer_main"):
        arrange(found, Settings(entry="infer_mian"))


def test_a_project_with_the_script_where_projects_keep_it() -> None:
    found = discover(ALEXNET)
    assert found.script == ALEXNET / "deploy" / "inference_python" / "infer.py"
    assert found.folder == ALEXNET
    assert found.name == "paddle_alexnet"


@pytest.mark.parametrize(
    ("name", "shape", "inputs", "names"),
    [
        ("paddle_text", "engine", [("text", "text")], ["result"]),
        (
            "paddle_driver",
            "driver",
            [("clean_path", "path"), ("noisy_path", "path")],
            ["heat_map", "mean", "built", "suffixes"],
        ),
        ("paddle_steps", "engine", [("img_path", "path")], ["ending", "size"]),
    ],
)
def test_packages(name: str, shape: str, inputs: list[Any], names: list[str]) -> None:
    found = discover(PACKAGES / name)
    assert found.options["shape"] == shape, found.reasons
    assert [(one["name"], one["kind"]) for one in found.options["inputs"]] == inputs
    assert found.options["names"] == names


def test_an_engine_in_a_module_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text("from infer import InferenceEngine\n" + ENGINE)
    (tmp_path / "infer.py").write_text("from engine import InferenceEngine\n" + PARSER + DIRECT)
    found = discover(tmp_path)
    assert found.reasons[0] == "engine.py:6 defines class InferenceEngine for Paddle"
    assert found.options["names"] == ["label", "score"]


def test_an_engine_nothing_drives(tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(
        "import paddle\nclass InferenceEngine:\n    def run(self, x):\n        return x\n"
    )
    with pytest.raises(StartError, match="InferenceEngine has no preprocess, and no function in it drives"):
        discover(tmp_path)


def test_two_scripts_with_an_engine(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(ENGINE + DIRECT)
    with pytest.raises(StartError, match=r"one.py and two.py both define class InferenceEngine.*panglot serve"):
        discover(tmp_path)


def test_other_scripts_are_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(
        "class InferenceEngine:\n    pass\n\ndef predict(request):\n    return request\n"
    )
    assert detect(tmp_path) is None
    assert discover(tmp_path).dialect == "plain"
