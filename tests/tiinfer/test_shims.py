"""What scripts import: every name of spec 1.3, on every CPython, with and without a server."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import interpreters
from support.server import ROOT
from support.side_by_side import differs
from support.tiinfer import last_line, model, original, run, write

SHIMS = ROOT / "src" / "panglot_worker" / "dialects" / "tiinfer" / "platform"
ALWAYS, FALLBACK = str(SHIMS / "always"), str(SHIMS / "fallback")
VERSIONS = interpreters.found()
OLDEST_AND_NEWEST = {version: VERSIONS[version] for version in (*list(VERSIONS)[:1], *list(VERSIONS)[-1:])}


def python(code: str, *path: str, executable: str = sys.executable, env: dict[str, str] | None = None) -> Any:
    """What a program prints, as JSON, run with these folders on its path and none of ours."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("TI_", "PYTHON"))}
    done = subprocess.run(
        [executable, "-c", code], env=clean | {"PYTHONPATH": os.pathsep.join(path)} | (env or {}),
        capture_output=True, text=True, cwd="/", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NAMES = """
import inspect, json, sys
sys.argv = ["x"]
import tiinfer, mosec, mosec.mixin, mosec.errors

def signature(thing):
    try:
        parameters = inspect.signature(thing).parameters.values()
        return [[p.name, repr(p.default) if p.default is not p.empty else None] for p in parameters]
    except (TypeError, ValueError):
        return None

found = {}
for module in (tiinfer, mosec, mosec.mixin, mosec.errors):
    for name in dir(module):
        thing = getattr(module, name)
        if name.startswith("_") or inspect.ismodule(thing) or getattr(thing, "__module__", "") == "typing":
            continue
        found[module.__name__ + "." + name] = signature(thing) if inspect.isfunction(thing) else type(thing).__name__
print(json.dumps(found))
"""


@pytest.mark.document("tiinfer.08")
def test_every_public_name_and_signature_of_the_original_is_there() -> None:
    theirs = python(NAMES, executable=str(original()))
    ours = python(NAMES, ALWAYS, FALLBACK)
    assert set(theirs) - set(ours) == set()
    functions = {name: parameters for name, parameters in theirs.items() if isinstance(parameters, list)}
    assert {name: ours[name] for name in functions} == functions


BEHAVIOUR = """
import json, os
import tiinfer
from tiinfer import *

class Own(tiinfer.Model):
    def __init__(self, model_dir):
        self.workers = 2
        super().__init__(model_dir)
        self.ready = True
    def predict(self, request):
        return request + ["predict"]

own, base = Own("/d"), tiinfer.Model()
before = [get_ti_model_dir(), get_ti_inference_nums(), get_ti_preprocess_nums(), get_ti_postprocess_nums(),
          get_ti_inference_max_batch_size(), Is_Multi_Framework_Type()]
set_ti_inference_nums(3); set_ti_preprocess_nums(1); set_ti_postprocess_nums(2); set_ti_inference_max_batch_size(8)
after = [get_ti_inference_nums(), get_ti_preprocess_nums(), get_ti_postprocess_nums(),
         get_ti_inference_max_batch_size(), Is_Multi_Framework_Type()]
tiinfer.print_envs()

class W(tiinfer.Worker):
    def forward(self, data):
        return data

append_worker(W, num=2)
(appended,) = get_mosec_workers()
print(json.dumps({
    "call": own(["start"]), "attributes": sorted(vars(own).items()), "base": [base({"a": 1}), base.load(), vars(base)],
    "before": before, "after": after, "env": [get_int_env("NUMBER", 5), get_int_env("WORD", 5), get_int_env("NONE", 5)],
    "name": IMPORT_MODULE_NAME, "worker": tiinfer.Worker.__module__.partition(".")[0],
    "appended": [appended["worker"].__name__, appended["num"], appended["max_batch_size"],
                 appended["start_method"], appended["env"]],
}))
"""


def behaviour(executable: str, *path: str) -> Any:
    return python(
        BEHAVIOUR, *path, executable=executable, env={"NUMBER": "7", "WORD": "x", "TI_INFERENCE_MAX_BATCH_SIZE": "2"}
    )


@pytest.mark.document("tiinfer.08")
def test_it_behaves_like_the_original() -> None:
    # Their print_envs prints, so theirs is silenced.
    code = BEHAVIOUR.replace("tiinfer.print_envs()", "")
    env = {"NUMBER": "7", "WORD": "x", "TI_INFERENCE_MAX_BATCH_SIZE": "2"}
    theirs = python("import sys; sys.argv = ['x']\n" + code, executable=str(original()), env=env)
    assert behaviour(sys.executable, ALWAYS, FALLBACK) == theirs


@pytest.mark.parametrize("executable", VERSIONS.values(), ids=VERSIONS.keys())
def test_it_behaves_the_same_on_every_python(executable: str) -> None:
    assert behaviour(executable, ALWAYS, FALLBACK) == behaviour(sys.executable, ALWAYS, FALLBACK)


STAGES = """
import json, os, sys
sys.argv = ["x"]
os.chdir(os.environ["FOLDER"]); sys.path.insert(0, "")
import tiinfer

def stages():
    return [[stage["worker"].__name__, *(stage[name] for name in ("num", "max_batch_size", "start_method", "env"))]
            for stage in tiinfer.load_workers()]

found = [stages()]
tiinfer.set_ti_preprocess_nums(2); found.append(stages())
tiinfer.set_ti_postprocess_nums(1); tiinfer.set_ti_inference_nums(3); tiinfer.set_ti_inference_max_batch_size(4)
found.append(stages())
print(json.dumps([found, type(tiinfer.load_model_service()).__name__, tiinfer.load_model_service().model_dir]))
"""


def test_stages_of_a_script_as_the_original_finds_them(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", model())
    env = {"FOLDER": str(folder), "TI_MODEL_DIR": "weights"}
    ours = python(STAGES, ALWAYS, FALLBACK, env=env)
    assert ours == python(STAGES, executable=str(original()), env=env)
    assert [stage[0] for stage in ours[0][2]] == ["Preprocess", "Inference", "Postprocess"]


MOSEC = """
import json
import mosec
from mosec import errors
from mosec.mixin import MsgpackMixin, NumBinIPCMixin, PlasmaShmIPCMixin, RedisShmIPCMixin, TypedMsgPackMixin

class W(NumBinIPCMixin, PlasmaShmIPCMixin, RedisShmIPCMixin, mosec.Worker):
    def forward(self, data):
        return data

def said(function, *arguments):
    try:
        return repr(function(*arguments))
    except Exception as error:
        return [type(error).__name__, str(error)]

w = W()
w.worker_id, w.stage, w.max_batch_size = 3, "W_1", 9
W.set_plasma_path("/x"); W.set_redis_url("redis://x")
class M(MsgpackMixin, mosec.Worker):
    forward = W.forward
class S(mosec.SSEWorker):
    forward = W.forward
server = mosec.Server()
print(json.dumps({
    "worker": [w.worker_id, w.stage, w.max_batch_size, w.example, w.req_mime_type, w.resp_mime_type, S.resp_mime_type],
    "json": [said(w.deserialize, b'{"a": [1]}'), said(w.deserialize, b"{"), said(w.serialize, {1, 2}),
             w.deserialize_ipc(w.serialize_ipc([1, 2]))],
    "abstract": said(mosec.Worker)[0],
    "errors": [[name, int(getattr(errors, name).code), getattr(errors, name).msg,
                issubclass(getattr(errors, name), errors.MosecError)]
               for name in ("ClientError", "DecodingError", "ValidationError", "ServerError", "EncodingError")],
    "timeout": issubclass(errors.MosecTimeoutError, Exception),
    "logger": mosec.get_logger().isEnabledFor(20),
    "msgpack": said(M().deserialize, b"")[0],
    "stream": said(S().send_stream_event, "x")[0],
    "server": [said(server.append_worker, W), said(server.run), said(server.register_runtime, {})],
    "runtime": mosec.Runtime(W, num=2).num,
}))
"""


@pytest.mark.parametrize("executable", OLDEST_AND_NEWEST.values(), ids=OLDEST_AND_NEWEST.keys())
def test_the_mosec_of_ours(executable: str) -> None:
    found = python(MOSEC, ALWAYS, FALLBACK, executable=executable)
    assert found["worker"] == [3, "W_1", 9, None, "application/json", "application/json", "text/event-stream"]
    assert found["json"] == ["{'a': [1]}", ["DecodingError", ""], ["EncodingError", ""], [1, 2]]
    assert found["abstract"] == "TypeError"
    assert found["errors"] == [
        ["ClientError", 2, "bad request", True],
        ["DecodingError", 2, "decoding error", True],
        ["ValidationError", 4, "request validation error", True],
        ["ServerError", 8, "internal error", True],
        ["EncodingError", 8, "encoding error", True],
    ]
    assert found["timeout"] is False
    assert found["logger"] is True
    assert found["msgpack"] in ("RuntimeError", "DecodingError")
    assert found["stream"] == "RuntimeError"
    assert all("tiinfer.append_worker" in text for _, text in found["server"])
    assert found["runtime"] == 2


# tiinfer.utils

UTILS = """
import base64, io, json, sys
import numpy as np
from PIL import Image
from tiinfer import utils
from tiinfer.utils import Horizontal, Vertical, fill_image, scale_fill_image, scale_image

picture = np.arange(20 * 40 * 3, dtype=np.uint8).reshape(20, 40, 3)
tall, grey = picture.transpose(1, 0, 2).copy(), picture[:, :, 0].copy()

def filled(image, limit, horizontal=None, vertical=None, color=7):
    result = fill_image(image, limit, horizontal, vertical, color)
    height, width = image.shape[:2]
    places = [(y, x) for y in (0, result.shape[0] - height) for x in (0, result.shape[1] - width)
              if np.array_equal(result[y:y + height, x:x + width], image)]
    rest = result.size - image.size
    coloured = int((result == color).sum() - (image == color).sum())
    return [list(result.shape), list(places[0]), coloured == rest, str(result.dtype)]

buffer = io.BytesIO()
Image.fromarray(picture).save(buffer, "PNG")
encoded = base64.b64encode(buffer.getvalue()).decode()
with open(sys.argv[1], "wb") as file:
    file.write(buffer.getvalue())

def failure(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__

print(json.dumps({
    "fill": [filled(picture, 30), filled(picture, 30, vertical=Vertical.UPPER), filled(tall, 30, Horizontal.LEFT),
             filled(tall, 30, Horizontal.RIGHT), filled(picture, 64, Horizontal.LEFT, Vertical.UPPER),
             filled(grey, 30), filled(picture, 20), filled(picture, 10)],
    "colour": int(fill_image(picture, 30)[-1, -1, -1]),
    "scale": [[list(image.shape[:2]), factor] for image, factor in (scale_image(picture, *sizes) for sizes in
              ((20, 40), (40, 80), (100, 150), (100, 300), (10, 1000), (10, 15), (7, 9)))],
    "both": [list(scale_fill_image(picture, 10, 20, 16)[0].shape), scale_fill_image(picture, 10, 20, 16)[1]],
    "failures": [failure(scale_image, [1], 2, 3), failure(fill_image, "x", 3),
                 failure(scale_fill_image, picture, 10, 15, 32)],
    "array": np.array_equal(utils.base64bytes_to_nparray(encoded), picture),
    "dtype": str(utils.base64bytes_to_nparray(encoded, np.float32).dtype),
    "pil": np.array_equal(np.asarray(utils.base64bytes_to_pil_image(encoded)), picture),
    "mat": [np.array_equal(utils.image_to_cv2_mat(text)[:, :, ::-1], picture) for text in (encoded, sys.argv[1])],
    "open": [np.array_equal(np.asarray(utils.image_to_pil_image(text)), picture) for text in (encoded, sys.argv[1])],
    "wrong": [failure(utils.image_to_cv2_mat, "abcd"), failure(utils.image_to_cv2_mat, ""),
              failure(utils.image_to_pil_image, "abcd")],
}))
"""


def test_the_image_helpers_are_right(tmp_path: Path) -> None:
    differs("tiinfer.utils")
    done = subprocess.run(
        [sys.executable, "-c", UTILS, str(tmp_path / "picture.png")], env={"PYTHONPATH": f"{ALWAYS}:{FALLBACK}"},
        capture_output=True, text=True, cwd="/", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["fill"] == [
        [[30, 40, 3], [0, 0], True, "uint8"],
        [[30, 40, 3], [10, 0], True, "uint8"],
        [[40, 30, 3], [0, 10], True, "uint8"],
        [[40, 30, 3], [0, 0], True, "uint8"],
        [[64, 64, 3], [44, 24], True, "uint8"],
        [[30, 40], [0, 0], True, "uint8"],
        [[20, 40, 3], [0, 0], True, "uint8"],
        [[20, 40, 3], [0, 0], True, "uint8"],
    ]
    assert found["colour"] == 1
    assert found["scale"] == [
        [[20, 40], 1.0], [[40, 80], 2.0], [[75, 150], 3.75], [[100, 200], 5.0], [[20, 40], 1.0], [[8, 15], 0.375],
        [[5, 9], 0.225],
    ]  # fmt: skip
    assert found["both"] == [[16, 20, 3], 0.5]
    assert found["failures"] == ["TypeError", "TypeError", "ValueError"]
    assert (found["array"], found["dtype"], found["pil"]) == (True, "float32", True)
    assert found["mat"] == found["open"] == [True, True]
    assert found["wrong"] == ["ValueError", "ValueError", "UnidentifiedImageError"]


# panglot shims


def test_a_script_runs_without_a_server() -> None:
    path = run("shims", "tiinfer").stdout.strip()
    assert path.split(":")[1:] == [ALWAYS, FALLBACK]
    code = "\n".join(
        [
            "import json, model_service",
            "model = model_service.Digits('.')",
            "print(json.dumps([model.load(), model(json.load(open('request.json')))]))",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, cwd=ROOT / "examples" / "tiinfer",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    loaded, answer = json.loads(done.stdout)
    assert loaded is True
    assert answer["result"]["digit"] == 7


def test_where_the_real_thing_is_installed_it_is_used() -> None:
    """And what is not installed is there all the same."""
    path = run("shims", "tiinfer").stdout.strip()
    code = "from importlib.util import find_spec as f; print(f('mosec').origin); print(f('torchnvjpeg').origin)"
    done = subprocess.run(
        [str(original()), "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    real, ours = done.stdout.splitlines()
    assert not real.startswith(FALLBACK)
    assert ours.startswith(FALLBACK)


def test_python_m_tiinfer_with_these_files_says_what_serves() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiinfer"], env={"PYTHONPATH": f"{ALWAYS}:{FALLBACK}"},
        capture_output=True, text=True, cwd="/", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "panglot tiinfer" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["tinfer"], "did you mean tiinfer?"), (["bare"], "import nothing of a platform"), ([], "Missing argument")],
)
def test_wrong_uses(arguments: list[str], words: str) -> None:
    done = run("shims", *arguments)
    assert done.returncode == 3
    assert words in last_line(done.stderr)


def test_base64_is_in_the_request_of_the_example() -> None:
    request = json.loads((ROOT / "examples" / "tiinfer" / "request.json").read_text())
    assert base64.b64decode(request["images"][0]).startswith(b"\x89PNG")
