"""Models of Triton's Python backend, in the style its documents have, run unmodified."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from panglot import dialects
from panglot.errors import StartError
from panglot.settings.counts import exactly
from support import environments
from support.rpc import address
from support.server import PACKAGES, ROOT, Server, panglot, serving, wait_until

CLIENT = Path(__file__).with_name("clients") / "nvidias.py"
UTILS = ROOT / "src/panglot_worker/dialects/triton/platform/always/triton_python_backend_utils"
NAMES = ("add_sub", "preprocessing", "repeat")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(serving(f"triton_{name}", "--grpc-port", "0", ready=False)) for name in NAMES
        }
        for server in started.values():
            server.wait_ready()
        yield started


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_nvidias_client_asks_them(name: str, servers: dict[str, Server]) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    where = (servers[name].url.partition("://")[2], address(servers[name]))
    done = subprocess.run([python, str(CLIENT), name, *where], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_requests_share_calls_by_their_rows(servers: dict[str, Server]) -> None:
    """A call has at most max_batch_size rows, whatever its requests bring; each has its own answer, or error."""
    server = servers["add_sub"]
    mark = len(server.lines)

    def ask(number: int) -> None:
        first = [[float(number)] * 4] * 3
        answer = server.predict({"INPUT0": first if number % 10 else [[2000.0] * 4] * 3, "INPUT1": first})
        if number % 10:
            assert answer.json()["OUTPUT0"] == [[2 * number] * 4] * 3
        else:
            assert (answer.status_code, answer.json()["error"]["message"]) == (400, "INPUT0 is beyond the limit")

    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(ask, range(100)))

    def calls() -> list[int]:
        return [int(line.rpartition(" ")[2]) for line in server.lines[mark:] if "a call with" in line]

    wait_until(lambda: sum(calls()) >= 100)
    assert set(calls()) <= {1, 2}


def test_responses_of_decoupled_models_come_as_they_are_sent(servers: dict[str, Server]) -> None:
    server = servers["repeat"]
    for how in ("loop", "thread"):
        answer = server.predict({"IN": [3, 1, 2], "HOW": [how]}, headers={"accept": "application/x-ndjson"})
        assert [json.loads(line)["OUT"] for line in answer.text.splitlines()] == [[3], [1], [2]]
    assert server.predict({"IN": [], "HOW": ["loop"]}).text == ""
    refused = server.predict({"IN": [1], "HOW": ["error"]})
    assert (refused.status_code, refused.json()["error"]["message"]) == (500, "not these")
    for how, said in (("raise", "a secret of the script"), ("forget", "sent no last response")):
        mark = len(server.lines)
        assert server.predict({"IN": [1], "HOW": [how]}).status_code == 500
        server.wait_log(said, after=mark)
    assert server.metric("panglot_worker_restarts_total") == 0


def test_models_that_are_not_decoupled_may_send_their_response_too(tmp_path: Path) -> None:
    """At once, or by a thread when execute has returned; what sends none, or two, is a failure of its own alone."""
    script = """
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

LAST = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        return [self.answered(request) for request in requests]

    def answered(self, request):
        number = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
        response = pb_utils.InferenceResponse([pb_utils.Tensor("Y", number * 2)])
        how = int(number.ravel()[0]) % 5
        if how == 0:
            return response
        sender = request.get_response_sender()
        if how == 1:
            sender.send(response, LAST)
        elif how == 2:
            threading.Timer(0.02, lambda: (sender.send(response), sender.send(flags=LAST))).start()
        elif how == 3:
            sender.send(response)
            sender.send(response, LAST)
"""
    config = (
        "max_batch_size: 8\ndynamic_batching { }\n"
        'input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
    )
    with serving(written(tmp_path, config, script)) as server, ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda number: server.predict({"X": [[number]]}), range(40)))
        for number, answer in enumerate(answers):
            if number % 5 < 3:
                assert answer.json() == {"Y": [[2 * number]]}
            else:
                assert answer.status_code == 500
        server.wait_log("sent no last response")
        server.wait_log("Non-decoupled model cannot send more than one response")
        assert server.metric("panglot_worker_restarts_total") == 0


WRONG: dict[str, tuple[Any, str]] = {
    "another input": ({"X": [1]}, "there is no input 'X'; there is INPUT0, INPUT1"),
    "no object": ([1], "send a JSON object with INPUT0, INPUT1"),
    "a wrong shape": ({"INPUT0": [[1]], "INPUT1": [[1]]}, "has the shape [1, 1], and the model takes [-1, 4]"),
    "text": ({"INPUT0": [["a"] * 4], "INPUT1": [[1] * 4]}, "takes numbers (FP32)"),
    "unequal rows": ({"INPUT0": [[1] * 4] * 2, "INPUT1": [[1] * 4]}, "the inputs differ in their rows: 1, 2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_the_model_cannot_take_is_said_in_a_sentence(what: str, servers: dict[str, Server]) -> None:
    body, said = WRONG[what]
    answer = servers["add_sub"].predict(body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_a_model_is_finalized() -> None:
    with serving("triton_add_sub") as server:
        server.stop()
        assert "Cleaning up..." in server.log


def test_the_example_and_the_template_answer_the_line_they_show(tmp_path: Path) -> None:
    made = tmp_path / "twice"
    assert panglot("new", "triton", str(made)).returncode == 0
    for folder, expected in ((ROOT / "examples" / "triton", {"DIGIT": [[7]]}), (made, {"OUTPUT": [[2, 4, 6, 8]]})):
        with serving(folder) as server:
            line = server.wait_log("try: (curl .*)")[1]
            shown = subprocess.run(["bash", "-c", line + " -sf"], capture_output=True, text=True, check=True, cwd=ROOT)
            assert expected.items() <= json.loads(shown.stdout).items()


# Without a server


@pytest.fixture(scope="module")
def utils() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location(UTILS.name, UTILS / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[UTILS.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == UTILS.name]:
        del sys.modules[name]


def test_what_models_import(utils: ModuleType) -> None:
    texts = numpy.array([b"a", "b\u00e9"], object)
    encoded = utils.serialize_byte_tensor(texts).item()
    assert utils.deserialize_bytes_tensor(encoded).tolist() == [b"a", "b\u00e9".encode()]
    tensor = utils.Tensor("x", numpy.ones((2, 3), numpy.float32))
    again = utils.Tensor.from_dlpack("y", tensor)
    assert (again.name(), again.as_numpy().tolist(), tensor.is_cpu()) == ("y", [[1, 1, 1]] * 2, True)
    assert utils.triton_string_to_numpy("TYPE_INT64") is numpy.int64


def test_what_is_refused_is_refused_with_a_sentence(utils: ModuleType) -> None:
    class OnGpu:
        def __dlpack__(self) -> None:
            raise AssertionError("nobody may take it")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    own = utils.InferenceRequest(model_name="other", inputs=[], requested_output_names=[])
    with pytest.raises(utils.TritonModelException, match=r"only where a server runs it"):
        own.exec()
    with pytest.raises(utils.TritonModelException, match="tensors on a GPU are not taken here"):
        utils.Tensor.from_dlpack("x", OnGpu())
    with pytest.raises(utils.TritonModelException, match="nobody waits"):
        own.get_response_sender()


MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def written(folder: Path, config: str = "", model: str = MODEL) -> Path:
    (folder / "1").mkdir()
    (folder / "1" / "model.py").write_text(model)
    if config:
        (folder / "config.pbtxt").write_text(config)
    return folder


def test_detection(tmp_path: Path) -> None:
    for path in (PACKAGES / "triton_add_sub", PACKAGES / "triton_add_sub" / "1"):
        package = dialects.discover(path)
        assert (package.dialect, package.name) == ("triton", "triton_add_sub")
        assert package.defaults == {"workers": exactly(1), "device": "cpu", "max_batch": 8}
        assert package.options["config"]["parameters"] == {"limit": {"string_value": "1000"}}
    (written(tmp_path) / "2").mkdir()
    (tmp_path / "2" / "model.py").write_text(MODEL)
    assert dialects.discover(tmp_path).options["version"] == "2"


@pytest.mark.parametrize(
    ("config", "model", "said"),
    [
        ("sequence_batching { }\nmodel_transaction_policy { decoupled: true }", MODEL, "has no sequences here"),
        ('backend: "onnxruntime"', MODEL, "its backend is onnxruntime"),
        ('input [ { name: "x" } ]', MODEL, "a tensor needs a name"),
        ("max_batch_size: -1", MODEL, "max_batch_size must be a whole number"),
        ("max_batch_sise: 1", MODEL, "no field of a model's configuration"),
        ("instance_group: 3", MODEL, "must be a message"),
        ("input [", MODEL, "missing|expected"),
        ("", "class TritonPythonModel:\n    pass\n", "has no execute"),
    ],
)
def test_what_cannot_work_is_known_before_it_is_loaded(config: str, model: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=said):
        dialects.discover(written(tmp_path, config, model))


def test_a_model_that_says_nothing_of_its_tensors(tmp_path: Path) -> None:
    ended = panglot("serve", str(written(tmp_path)), "--port", "0")
    assert ended.returncode == 3
    assert "nothing says what the model takes and gives (fix: write input and output into config.pbtxt" in ended.stderr
