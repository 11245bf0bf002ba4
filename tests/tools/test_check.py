"""`panglot check PATH INPUT... --against OTHER`: the first stage that differs is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panglot.tools import arrays
from support.server import PACKAGES, ROOT, Server, panglot, serving

REFERENCE = PACKAGES / "check_reference"
WRONG = {
    "BGR for RGB": ('.transpose(2, 0, 1)', '[:, :, ::-1].transpose(2, 0, 1)', "preprocess"),
    "wrong mean": ("0.485, 0.456, 0.406", "0.5, 0.5, 0.5", "preprocess"),
    "resize instead of crop": (
        "picture.crop((left, top, left + SIDE, top + SIDE))", "picture.resize((SIDE, SIDE))", "preprocess",
    ),
    "float64": ("/ 255 - MEAN", "/ 255 - MEAN.astype(float)", "preprocess"),
    "other weights": ("default_rng(7)", "default_rng(8)", "inference"),
    "off by 1e-3": ('"score": float(shares[best])', '"score": float(shares[best]) + 1e-3', "final"),
}  # fmt: skip


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    from PIL import Image

    path = tmp_path_factory.mktemp("pictures") / "noise.png"
    pixels = np.random.default_rng(3).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path)


def changed(folder: Path, old: str, new: str) -> Path:
    shutil.copytree(REFERENCE, folder)
    script = folder / "model.py"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))
    return folder


def outcomes(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", WRONG)
def test_the_stage_that_went_wrong_is_named(tmp_path: Path, picture: str, name: str) -> None:
    old, new, stage = WRONG[name]
    other = changed(tmp_path / "other", old, new)
    done = panglot("check", str(REFERENCE), picture, "--against", str(other), "--json")
    assert done.returncode == 1, done.stderr
    outcome = outcomes(done)[0]
    assert (outcome["first"], outcome["problem"]) == (stage, "")
    assert outcome["stages"]["decode"]["differs"] is False
    keys = {entry["key"]: entry for entry in outcome["stages"][stage]["keys"]}
    if stage == "final":
        assert 0.9e-3 < keys["score"]["gap"] < 1.1e-3
        assert not keys["shares"]["differs"]
    elif name == "float64":
        assert "float32 against float64" in keys[""]["differs"]
    else:
        assert " differ, most at [0, " in keys[""]["differs"]


@pytest.fixture(scope="module", params=[("--dev",), ()], ids=["with --dev", "without"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = changed(tmp_path_factory.mktemp("served") / "copy", *WRONG["BGR for RGB"][:2])
    with serving(folder, *request.param) as server:
        yield server


def test_a_server_shows_its_stages_only_with_dev(server: Server, picture: str) -> None:
    dev = "--dev" in server.process.args  # type: ignore[operator]
    done = panglot("check", str(REFERENCE), picture, "--against", server.url, "--json")
    assert done.returncode == 1, done.stderr
    outcome = outcomes(done)[0]
    assert outcome["first"] == ("preprocess" if dev else "final")
    assert ("only the final answers" in outcome["stages"]["preprocess"]["note"]) is not dev
    # Whoever does not ask for stages gets the answer alone.
    plain = server.predict(content=Path(picture).read_bytes(), headers={"content-type": "image/png"})
    assert plain.headers["content-type"] == "application/json"
    asked = {"content-type": "image/png", "accept": "application/x-panglot-stages"}
    answer = server.predict(content=Path(picture).read_bytes(), headers=asked)
    assert (answer.headers["content-type"] == "application/x-panglot-stages") is dev


def test_the_same_package_agrees_with_itself(picture: str) -> None:
    done = panglot("check", str(REFERENCE), picture, str(ROOT / "README.md"), "--against", str(REFERENCE))
    assert "decoded input equal" in done.stdout
    assert "UnidentifiedImageError" in done.stdout
    assert done.stdout.rstrip().endswith("1 of 2 inputs could not be compared")
    assert done.returncode == 1
    done = panglot("check", str(REFERENCE), picture, "--against", str(REFERENCE))
    assert done.stdout.rstrip().endswith("both sides agree on 1 input")
    assert done.returncode == 0


def test_stages_are_seen_across_pools(tmp_path: Path, picture: str) -> None:
    """Preprocess, inference and postprocess in processes of their own: the record travels with the item."""
    old, new, stage = WRONG["wrong mean"]
    other = changed(tmp_path / "other", old, new)
    (other / "panglot.toml").write_text("[pools]\npreprocess = 1\npostprocess = 1\n")
    done = panglot("check", str(REFERENCE), picture, "--against", str(other), "--json")
    outcome = outcomes(done)[0]
    assert (outcome["first"], outcome["problem"]) == (stage, "")
    assert all(outcome["stages"][name]["keys"] for name in ("decode", "preprocess", "inference", "final"))


def copied(package: str, folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of a package with one thing changed."""
    shutil.copytree(PACKAGES / package, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return folder


def test_pools_that_a_script_asks_for_are_compared_by_their_names(tmp_path: Path) -> None:
    question = tmp_path / "question.json"
    question.write_text('{"number": 3}')
    change = ("model_service.py", 'item["number"] * 2', 'item["number"] * 3')
    other = copied("tiinfer_pipeline", tmp_path / "other", *change)
    words = ("check", str(PACKAGES / "tiinfer_pipeline"), str(question), "--against", str(other))
    outcome = outcomes(panglot(*words, "--json"))[0]
    assert (outcome["first"], outcome["problem"]) == ("Double_2", "")
    assert [name for name in outcome["stages"] if "preprocess" not in name] == [
        "decode", "Number_1", "Double_2", "Text_3", "final",
    ]  # fmt: skip
    assert "the first stage that differs: Double_2 (1 of 1 input)" in panglot(*words).stdout


GRAPH = """
main = "two"
[[graphs]]
name = "two"
connections = [
    { cap = 4, ports = ["source:out", "shrink:inp"] },
    { cap = 4, ports = ["shrink:out", "count:inp"] },
    { cap = 4, ports = ["source:inp", "count:out"] },
]
nodes = [
    { name = "source", ty = "ImageServer", port = 8084, response = "json" },
    { name = "shrink", ty = "Shrink", cloned = 2 },
    { name = "count", ty = "Count" },
]
"""
NODES = """
import json
from megflow import register

class Node:
    def __init__(self, name, args):
        pass

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope.repack(self.work(envelope.msg)))

@register(inputs=["inp"], outputs=["out"])
class Shrink(Node):
    def work(self, msg):
        return {"data": msg["data"][::2, ::2], "extra_data": ""}

@register(inputs=["inp"], outputs=["out"])
class Count(Node):
    def work(self, msg):
        return json.dumps({"sum": int(msg["data"].sum())})
"""


def graph(folder: Path, nodes: str) -> Path:
    folder.mkdir()
    (folder / "two.toml").write_text(GRAPH)
    (folder / "nodes.py").write_text(nodes)
    return folder


def test_nodes_of_a_graph_are_compared_by_their_names(tmp_path: Path, picture: str) -> None:
    """In packages that are run here, and in a server with --dev; whoever does not ask gets the answer alone."""
    right, wrong = graph(tmp_path / "right", NODES), graph(tmp_path / "wrong", NODES.replace("::2, ::2", "1::2, ::2"))
    outcome = outcomes(panglot("check", str(right), picture, "--against", str(wrong), "--json"))[0]
    assert (outcome["first"], outcome["problem"]) == ("shrink.out", "")
    assert list(outcome["stages"]) == ["decode", "shrink.out", "count.out", "final"]
    with serving(wrong, "--dev") as server:
        done = panglot("check", str(right), picture, "--against", str(server.client.base_url), "--json")
        assert outcomes(done)[0]["first"] == "shrink.out"
        plain = server.client.post(
            "/analyze/x", content=Path(picture).read_bytes(), headers={"content-type": "image/png"}
        )
        assert list(plain.json()) == ["sum"]


def test_dialects_and_async_scripts_are_compared(tmp_path: Path) -> None:
    """ModelArts against an async plain script that does the same."""
    model = ROOT / "examples" / "modelarts" / "model"
    (tmp_path / "model.py").write_text(
        "import io\nimport numpy as np, onnxruntime\nfrom PIL import Image\n"
        f"session = onnxruntime.InferenceSession({str(model / 'digits.onnx')!r})\n"
        "class Model:\n"
        "    async def preprocess(self, file):\n"
        "        picture = Image.open(io.BytesIO(file.bytes)).convert('L').resize((8, 8), Image.BOX)\n"
        "        return np.asarray(picture, dtype=np.float32).ravel()[None] / 255\n"
        "    async def predict(self, rows):\n"
        "        return session.run(['probabilities'], {'images': rows})[0]\n"
        "    async def postprocess(self, rows):\n"
        "        return {'digits': [int(row.argmax()) for row in rows],\n"
        "                'certainty': [round(float(row.max()), 3) for row in rows]}\n"
    )
    words = ("check", str(model), str(model / "seven.png"), "--against", str(tmp_path), "--json")
    done = panglot(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = outcomes(done)[0]["stages"]
    assert all(stages[name]["keys"] for name in ("preprocess", "inference", "final"))
    assert "different forms" in stages["decode"]["note"]


def test_a_command_line_is_a_side_too(tmp_path: Path, picture: str) -> None:
    """A predict script that saves its result, or prints it."""
    done = panglot("run", str(REFERENCE), picture, "--save", str(tmp_path / "right.npy"))
    assert done.returncode == 0, done.stderr
    script = tmp_path / "predict.py"
    script.write_text("import shutil, sys\nshutil.copy(sys.argv[2], sys.argv[1])\n")
    line = f"{script} {{output}} {tmp_path / 'right.npy'} {{input}}"
    done = panglot("check", str(REFERENCE), picture, "--against", line)
    assert done.returncode == 0, done.stdout + done.stderr
    value = {name: array.tolist() for name, array in arrays.read(tmp_path / "right.npy").items()}
    answer = {"class": value["class"][0], "score": value["score"][0] + 0.1, "shares": value["shares"]}
    script.write_text(f"print('loading')\nprint({json.dumps(answer)!r})\n")
    done = panglot("check", str(REFERENCE), picture, "--against", f"{sys.executable} {script} {{input}}")
    assert done.returncode == 1
    assert "the first stage that differs: final" in done.stdout
    script.write_text("raise SystemExit('no weights')\n")
    done = panglot("check", str(REFERENCE), picture, "--against", f"{script} {{input}}")
    assert "exit code 1: no weights" in done.stdout
    assert done.returncode == 1


def test_answers_that_were_written_down_are_a_side_too(tmp_path: Path, picture: str) -> None:
    """Lines of `panglot run --json` or `call --json`, by input; or bare answers, in the order of the inputs."""
    other = tmp_path / "other.png"
    shutil.copy(picture, other)
    done = panglot("run", str(REFERENCE), picture, "--json")
    answer = json.loads(done.stdout)["answer"]
    (tmp_path / "named.jsonl").write_text(done.stdout)
    (tmp_path / "bare.jsonl").write_text(json.dumps(answer) + "\n\n" + json.dumps({**answer, "score": 0.5}) + "\n")
    done = panglot("check", str(REFERENCE), picture, "--against", str(tmp_path / "named.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = outcomes(panglot("check", str(REFERENCE), picture, str(other), "--against",
                                     str(tmp_path / "bare.jsonl"), "--json"))  # fmt: skip
    assert (first["first"], second["first"]) == ("", "final")
    done = panglot("check", str(REFERENCE), str(other), "--against", str(tmp_path / "named.jsonl"))
    assert "it has no answer to this input" in done.stdout
    assert done.returncode == 1


def test_a_command_line_runs_in_the_interpreter_that_was_named(tmp_path: Path, picture: str) -> None:
    """--against-python, else that of the package: by --python, or by its panglot.toml."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.py").write_text("import sys\ndef predict(file):\n    return {'which': sys.executable}\n")
    script = tmp_path / "predict.py"
    script.write_text("import json, sys\nprint(json.dumps({'which': sys.executable}))\n")
    pythons = []
    for name in ("one", "two"):
        pythons.append(str(tmp_path / name / "bin" / "python"))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / name)], check=True)

    def check(*flags: str) -> int:
        done = panglot("check", str(package), picture, "--against", f"{script} {{input}}", "--json", *flags)
        [outcome] = outcomes(done)
        assert outcome["problem"] == "", outcome
        return done.returncode

    assert check("--python", pythons[0]) == 0
    assert check("--python", pythons[0], "--against-python", pythons[1]) == 1
    (package / "panglot.toml").write_text(f"python = {pythons[1]!r}\n")
    assert check() == 0
    assert check("--against-python", pythons[0]) == 1


def test_another_name_or_shape_is_a_difference(tmp_path: Path) -> None:
    for name, answer in (("cat", "{'cat': 3}"), ("dog", "{'dog': [3]}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(f"def predict(request):\n    return {answer}\n")
    words = ("check", str(tmp_path / "cat"), "{}", "--against", str(tmp_path / "dog"))
    done = panglot(*words)
    assert done.returncode == 1
    assert "cat: key: it is missing on the right" in done.stdout
    assert "dog: key: it is missing on the left" in done.stdout
    assert panglot(*words, "--lenient").returncode == 0
    (tmp_path / "dog" / "model.py").write_text("def predict(request):\n    return {'cat': [3]}\n")
    done = panglot(*words)
    assert done.returncode == 1
    assert "shape: [] against [1]" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.npy",), "there are not two .npy files"),
        ((), "there are not two .npy files"),
        (("--against", "x"), "no package to check"),
        ((str(REFERENCE), "--against", str(REFERENCE)), "no inputs"),
        ((str(REFERENCE), "{}", "--against", "http://127.0.0.1:9"), "does not answer: Connection refused"),
        ((str(REFERENCE), "{}", "--against", "none.jsonl"), "none.jsonl cannot be read: No such file"),
        ((str(REFERENCE), "{}", "--against", "http://:x"), "is no address of a server"),
        ((str(REFERENCE), "{}", "--against", str(PACKAGES / "broken" / "syntax")), "model.py:"),
        ((str(REFERENCE), "{}", "--against", str(REFERENCE), "--atol", "-1"), "-1"),
    ],
)
def test_wrong_uses_are_told_in_one_line(words: tuple[str, ...], said: str) -> None:
    done = panglot("check", *words)
    assert done.returncode == 3
    assert said in done.stderr.splitlines()[-1]
