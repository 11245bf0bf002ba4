"""What scripts found in public do that the document's do not: arguments, folders, nets and services of other kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from support.paddle import python
from support.server import panglot, serving

ENGINE = '''"""The size of a picture."""

import argparse
import os

from PIL import Image


class InferenceEngine:
    def __init__(self, args):
        self.args = args
{built}

    def preprocess(self, img_path):
        return Image.open(img_path)

    def run(self, x):
        return x.size

    def postprocess(self, x):
        return x


def get_args():
    parser = argparse.ArgumentParser()
{arguments}
    return parser.parse_args()


def infer_main(args):
    engine = InferenceEngine(args)
    width, height = engine.postprocess(engine.run(engine.preprocess(args.{input})))
    return width, height


if __name__ == "__main__":
    print(infer_main(get_args()))
'''


def write(folder: Path, *arguments: str, input: str = "img_path", built: str = "pass") -> Path:
    """A script with an engine; `arguments` are what its parser is told."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"    parser.add_argument({argument})" for argument in arguments)
    inside = "\n".join(f"        {line}" for line in built.splitlines())
    (folder / "infer.py").write_text(ENGINE.format(arguments=lines, input=input, built=inside))
    return folder / "infer.py"


def drawn(path: Path) -> bytes:
    Image.new("RGB", (30, 20), "red").save(path)
    return path.read_bytes()


SIZE = {"width": 30, "height": 20}


# Arguments


@pytest.mark.parametrize("default", ["./demo.jpg", "images/demo.PNG"])
def test_an_argument_called_dir_is_a_file_where_its_default_is_a_picture(default: str, tmp_path: Path) -> None:
    script = write(tmp_path / "package", f'"--img-dir", default="{default}"', input="img_dir")
    with serving(script.parent) as server:
        assert server.predict(content=drawn(tmp_path / "sent.jpg")).json() == SIZE, server.log


LISTED = "parts = args.model_dirs.split(',')\nassert all(os.path.isfile(part + '/net.txt') for part in parts), parts"


def test_a_model_dir_that_nobody_reads_does_not_block_the_start(tmp_path: Path) -> None:
    """Its parser has --model-dir with the default `.`, and the script reads --model-dirs."""
    folder = tmp_path / "package"
    script = write(
        folder, '"--img-path"', '"--model-dir", default="."', '"--model-dirs", default="one,two"', built=LISTED
    )
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "net.txt").write_text("weights of our own kind")
    with serving(script) as server:
        assert server.predict(content=drawn(tmp_path / "sent.jpg")).json() == SIZE


def test_a_model_dir_that_is_given_or_read_is_still_checked(tmp_path: Path) -> None:
    arguments = ('"--img-path"', '"--model-dir", default="."')
    unread = write(tmp_path / "unread", *arguments)
    read = write(tmp_path / "read", *arguments, built="self.files = os.listdir(args.model_dir)")
    for words in ([str(unread), "--", "--model-dir", str(tmp_path)], [str(read)]):
        done = panglot("serve", words[0], "--port", "0", *words[1:])
        assert done.returncode == 3
        assert "there is no exported model in" in done.stderr


# Where it runs


PLACED = """
with open("configs/net.txt") as file:
    self.factor = int(file.read())
with open("logs/run.txt", "a") as log:
    log.write("started\\n")
""".strip()


def project(root: Path, home: str) -> Path:
    """A project whose script is in deploy, and reads and writes below another folder of it."""
    (root / home / "configs").mkdir(parents=True)
    (root / home / "configs" / "net.txt").write_text("7")
    (root / home / "logs").mkdir()
    return write(root / "deploy", '"--img-path"', built=PLACED)


@pytest.mark.parametrize(("home", "served"), [("", "deploy/infer.py"), ("", "deploy"), ("", ""), ("deploy", "")])
def test_a_script_runs_where_the_paths_in_it_lead_somewhere(home: str, served: str, tmp_path: Path) -> None:
    """In the project's root, or beside the script: whatever of the project is named on the command line."""
    root = tmp_path / "project"
    project(root, home)
    with serving(root / served) as server:
        assert server.predict(content=drawn(tmp_path / "sent.jpg")).json() == SIZE
        chosen = f"the script runs in {root / home}" + ("$" if served == home else ", where configs/net.txt is$")
        server.wait_log(f"(?m){chosen}")
    assert server.log.count("the script runs in") == 1
    assert (root / home / "logs" / "run.txt").read_text() == "started\n"


def test_a_script_whose_paths_lie_beside_it_runs_there_without_a_word(tmp_path: Path) -> None:
    project(tmp_path, "deploy")
    with serving(tmp_path / "deploy" / "infer.py") as server:
        assert server.predict(content=drawn(tmp_path / "sent.jpg")).json() == SIZE
    assert "the script runs in" not in server.log


# Nets without parameters


EXPORT = """
import sys
import paddle

class Net(paddle.nn.Layer):
    def forward(self, x):
        return x * 2.0

class Weighed(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.last = paddle.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(x)

for name, kind in (("free", Net), ("weighed", Weighed)):
    spec = [paddle.static.InputSpec([None, 4], "float32", "x")]
    paddle.jit.save(paddle.jit.to_static(kind(), input_spec=spec), f"{sys.argv[1]}/{name}/inference")
"""
RUNS = """
import argparse
import json
import os

import numpy
from paddle.inference import Config, create_predictor


class InferenceEngine:
    def __init__(self, args):
        stem = os.path.join(args.model_dir, "inference")
        config = Config(stem + ".pdmodel", stem + ".pdiparams")
        config.disable_gpu()
        self.predictor = create_predictor(config)

    def preprocess(self, text):
        return numpy.array([json.loads(text)], "float32")

    def run(self, x):
        handle = self.predictor.get_input_handle(self.predictor.get_input_names()[0])
        handle.copy_from_cpu(x)
        self.predictor.run()
        return self.predictor.get_output_handle(self.predictor.get_output_names()[0]).copy_to_cpu()

    def postprocess(self, x):
        return x[0]


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir", default=None)
    parser.add_argument("--text", default="[1, 2, 3, 4]")
    return parser.parse_args()


def infer_main(args):
    engine = InferenceEngine(args)
    twice = engine.postprocess(engine.run(engine.preprocess(args.text)))
    return twice


if __name__ == "__main__":
    infer_main(get_args())
"""


@pytest.fixture(scope="module", params=["json", "pdmodel"])
def nets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "export.py").write_text(EXPORT)
    python(str(folder / "export.py"), str(folder), legacy=request.param == "pdmodel")
    assert sorted(file.suffix for file in (folder / "free").iterdir()) == [f".{request.param}"], "no .pdiparams"
    return folder


def test_a_net_without_a_single_parameter_is_served_by_a_script(nets: Path, tmp_path: Path) -> None:
    """Paddle writes no file of parameters for it. The folder is found by the program alone."""
    (tmp_path / "infer.py").write_text(RUNS)
    (tmp_path / "exported").symlink_to(nets / "free")
    with serving(tmp_path) as server:
        assert server.predict({"text": "[1, 2, 3, 4]"}).json() == {"twice": [2, 4, 6, 8]}, server.log


def test_a_net_without_a_single_parameter_is_served_as_it_is(nets: Path) -> None:
    with serving(nets / "free") as server:
        assert list(server.predict({"x": [[1, 2, 3, 4]]}).json().values()) == [[[2, 4, 6, 8]]], server.log


def test_a_net_without_a_single_parameter_is_exported_and_tried(tmp_path: Path) -> None:
    written = EXPORT.replace('("weighed", Weighed)', "").replace("{sys.argv[1]}/{name}", ".")
    (tmp_path / "export_model.py").write_text(written)
    done = panglot("export", str(tmp_path), "--json", seconds=110)
    assert done.returncode == 0, done.stdout + done.stderr
    [model] = json.loads(done.stdout)["models"]
    assert [Path(file).name for file in model["files"]] == ["inference.json"]
    assert [output["shape"] for output in model["outputs"]] == [[1, 4]]


def test_a_net_whose_parameters_are_missing_is_refused(nets: Path, tmp_path: Path) -> None:
    """Paddle 3 would load it, and answer from memory that nobody filled."""
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "infer.py").write_text(RUNS)
    for place in ("script/exported", "alone"):
        (tmp_path / place).mkdir()
        program = next(file for file in (nets / "weighed").iterdir() if file.suffix in (".json", ".pdmodel"))
        (tmp_path / place / program.name).write_bytes(program.read_bytes())
    for served in ("script", "alone"):
        done = panglot("serve", str(tmp_path / served), "--port", "0")
        assert done.returncode == 3
        assert "inference.pdiparams are not there" in done.stderr, done.stderr


# Services of Paddle Serving


SERVICE = """
from paddle_serving_server.web_service import Op, WebService


class DigitOp(Op):
    def init_op(self):
        self.size = 28

    def preprocess(self, input_dicts, data_id, log_id):
        return {"x": input_dicts}, False, None, ""

    def postprocess(self, input_dicts, fetch_data, data_id, log_id):
        return {"digit": fetch_data}, None, ""


class DigitService(WebService):
    def get_pipeline_response(self, read_op):
        return DigitOp(name="digit", input_ops=[read_op])


service = DigitService(name="digit")
service.prepare_pipeline_config("config.yml")
service.run_service()
"""


def test_a_service_of_paddle_serving_is_named_with_what_to_do_instead(tmp_path: Path) -> None:
    """Its model step is Serving's own, so it is not run; the same project's infer.py answers in the same form."""
    folder = tmp_path / "deploy" / "serving_python"
    folder.mkdir(parents=True)
    (folder / "web_service.py").write_text(SERVICE)
    for served in (folder, folder / "web_service.py"):
        done = panglot("serve", str(served), "--port", "0")
        assert done.returncode == 3
        last = done.stderr.strip().splitlines()[-1]
        assert "web_service.py:16: DigitService is a service of Paddle Serving, which is not run here: " in last
        assert "(fix: serve an infer.py with class InferenceEngine, " in last
    engine = write(tmp_path / "deploy" / "inference_python", '"--img-path"')
    done = panglot("serve", str(folder), "--port", "0")
    assert f"panglot serve {engine})" in done.stderr.strip().splitlines()[-1]


def test_a_script_with_a_predict_beside_such_a_service_is_served(tmp_path: Path) -> None:
    (tmp_path / "web_service.py").write_text(SERVICE)
    (tmp_path / "model.py").write_text("def predict(x):\n    return x\n")
    with serving(tmp_path) as server:
        assert server.predict(3).json() == 3
