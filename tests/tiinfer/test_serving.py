"""What Franca does with tiinfer packages beyond what the platform's own server shows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.server import PACKAGES, serving, wait_until
from support.tiinfer import Heard, Served, heard, ours, run, write

MODEL = "import tiinfer\nclass Own(tiinfer.Model):\n    def load(self):\n        return True\n"


@pytest.fixture(scope="module")
def ops() -> Iterator[Served]:
    with ours("tiinfer_ops", env={"FRANCA_ALLOW_HOST": "model.test"}) as server:
        yield server


# Routes

ROUTES = [
    ("POST", "/inference", 200),
    ("POST", "/v1/models/m:predict", 200),
    ("POST", "/v1/models/m%3Apredict", 200),
    ("POST", "/tione/v1/models/m:predict", 200),
    ("POST", "/tione/inference", 200),
    ("POST", "/v1/models/other:predict", 404),
    ("POST", "/v1/models/m", 405),
    ("POST", "/inference/", 404),
    ("GET", "/v1/models/m:predict", 405),
    ("GET", "/", 200),
    ("GET", "/v1/models", 200),
    ("GET", "/v1/models/m", 200),
    ("GET", "/tione/v1/models/m", 200),
    ("GET", "/v1/models/other", 404),
    ("GET", "/metrics", 200),
    ("GET", "/docs", 200),
    ("GET", "/v2/health/ready", 200),
]


@pytest.mark.parametrize(("method", "path", "status"), ROUTES)
def test_routes(method: str, path: str, status: int, ops: Served) -> None:
    response = ops.client.request(method, path, **({"json": {"a": 1}} if method == "POST" else {}))
    assert response.status_code == status
    if status in (404, 405):
        assert response.headers["content-type"].startswith("text/plain")


def test_the_front_page_is_a_greeting_or_the_status_page(ops: Served) -> None:
    assert ops.get("/") == Heard(200, "MOSEC service")
    assert ops.get("/", accept="*/*") == Heard(200, "MOSEC service")
    page = ops.client.get("/", headers={"accept": "text/html,application/xhtml+xml"})
    assert page.headers["content-type"].startswith("text/html")
    assert "tiinfer_ops" in page.text


def test_who_may_ask_what() -> None:
    """The platform's health routes are public; the status page is not; nor is the script."""
    with ours("tiinfer_ops", env={"FRANCA_TOKEN": "secret"}) as server:
        asked = {
            (path, accept): server.client.get(path, headers={"accept": accept}).status_code
            for path in ("/", "/v1/models", "/v1/models/m", "/metrics")
            for accept in ("*/*", "text/html")
        }
        assert asked == {
            ("/", "*/*"): 200, ("/", "text/html"): 401,
            ("/v1/models", "*/*"): 200, ("/v1/models", "text/html"): 200,
            ("/v1/models/m", "*/*"): 200, ("/v1/models/m", "text/html"): 200,
            ("/metrics", "*/*"): 401, ("/metrics", "text/html"): 401,
        }  # fmt: skip
        refused = server.client.post("/inference", json=1)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.headers["content-type"].startswith("text/plain")
        token = {"authorization": "Bearer secret"}
        assert server.client.post("/inference", json=1, headers=token).json() == 1
        assert server.client.get("/", headers={**token, "accept": "text/html"}).status_code == 200


def test_answers_are_compact_and_have_our_headers(ops: Served) -> None:
    response = ops.client.post("/inference", json={"a": [1, 2], "b": "é"})
    assert response.content == '{"a":[1,2],"b":"é"}'.encode()
    assert response.headers["content-type"] == "application/json"
    assert "preprocess;dur=" in response.headers["server-timing"]
    assert response.headers["x-request-id"]


def test_the_document_describes_it(ops: Served) -> None:
    document = ops.client.get("/openapi.json").json()
    operation = document["paths"]["/inference"]["post"]
    assert list(operation["requestBody"]["content"]) == ["application/json"]
    assert {"200", "400", "408", "413", "429", "500", "503"} <= set(operation["responses"])


def test_the_request_of_config_json_is_the_example(tmp_path: Path) -> None:
    for number, example in enumerate(('{"images": ["abc"]}', {"images": ["abc"]})):
        config = json.dumps({"apis": [{"url": "/v1/models/m:predict", "request_example": example}]})
        folder = write(tmp_path / str(number), MODEL, config__json=config)
        with ours(folder) as server:
            content = server.client.get("/openapi.json").json()["paths"]["/inference"]["post"]["requestBody"]["content"]
            assert content["application/json"]["example"] == {"images": ["abc"]}
            server.wait_log(r"try: curl .*'\{\"images\":\[\"abc\"\]\}'")


# Loading


def test_while_loading_the_port_is_open_and_says_so(tmp_path: Path) -> None:
    script = MODEL.replace(
        "return True", "import os, time\n        while not os.path.exists('go'): time.sleep(0.02)\n        return True"
    )
    folder = write(tmp_path / "own", script)
    with ours(folder, ready=False) as server:
        assert server.get("/") == Heard(200, "MOSEC service")
        assert server.get("/v1/models/m") == Heard(503, {"name": "m", "ready": False})
        assert server.get("/v1/models") == Heard(200, ["m"])
        answer = server.client.post("/inference", json=1)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert int(answer.headers["retry-after"]) >= 1
        (folder / "go").touch()
        server.wait_ready()
        assert server.get("/v1/models/m") == Heard(200, {"name": "m", "ready": True})


INIT = "import tiinfer\nclass Own(tiinfer.Model):\n"
LOADS = {
    "returns True": (MODEL, r"load\(\) returned True"),
    "returns something true": (MODEL.replace("return True", "return 'yes'"), r"load\(\) returned 'yes'"),
    "sets ready and returns nothing": (MODEL.replace("return True", "self.ready = True"), "self.ready is true"),
    "ready is set before the parent's __init__": (
        INIT + "    def __init__(self, model_dir):\n        self.ready = True\n        super().__init__(model_dir)\n"
        "    def load(self):\n        pass\n", "self.ready is true"),
}  # fmt: skip
FAILED_LOADS = {
    "returns False": (MODEL.replace("return True", "return False"), "model_service.py:3: load() returned False"),
    "returns False while ready": (MODEL.replace("return True", "self.ready = True; return False"), "load() returned False"),
    "returns nothing": (MODEL.replace("return True", "pass"), "load() returned None (fix: return True"),
    "is not there": (INIT + "    pass\n", "load() returned None"),
    "raises": (MODEL.replace("return True", "open('weights')"), "model_service.py:4: running load() failed: FileNotFoundError"),
    "constructor takes nothing": (
        INIT + "    def __init__(self):\n        pass\n", "model_service.py:3: Own.__init__ must take the model's folder"),
    "constructor raises": (
        INIT + "    def __init__(self, model_dir):\n        1 / 0\n", "model_service.py:4: constructing Own failed: ZeroDivision"),
    "no class": ("import tiinfer\n", "there is no subclass of tiinfer.Model in it"),
    "no package": ("import tiinfer\nimport tiacc_inference\n" + MODEL, "model_service.py:2: the package 'tiacc_inference' is not"),
    "wrong worker": ("import tiinfer\ntiinfer.append_worker(int)\n", "append_worker needs a subclass of mosec.Worker"),
    "no workers": (
        "import tiinfer, mosec\nclass W(mosec.Worker):\n    def forward(self, data): ...\ntiinfer.append_worker(W, num=0)\n",
        "num and max_batch_size of W must be 1 or more"),
    "too few variables": (
        "import tiinfer, mosec\nclass W(mosec.Worker):\n    def forward(self, data): ...\n"
        "tiinfer.append_worker(W, num=2, env=[{}])\n", "env of W must be a list of 2 dicts"),
    "count too small": ("import tiinfer\ntiinfer.set_ti_inference_nums(0)\n" + MODEL, "TI_INFERENCE_NUMS is 0; it must be at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOADS)
def test_loads_that_succeed(name: str, tmp_path: Path) -> None:
    script, line = LOADS[name]
    with ours(write(tmp_path / "own", script)) as server:
        server.wait_log(line)
        assert server.ask({"a": 1}) == Heard(200, {"a": 1})


@pytest.mark.parametrize("name", FAILED_LOADS)
def test_loads_that_fail(name: str, tmp_path: Path) -> None:
    script, words = FAILED_LOADS[name]
    folder = write(tmp_path / "own", script)
    done = run("tiinfer", "--port", "0", folder=folder)
    assert done.returncode == 3, done.stderr
    assert words in done.stderr.strip().splitlines()[-1]


def test_a_failed_load_shows_what_the_script_logged_and_its_traceback(tmp_path: Path) -> None:
    script = MODEL.replace("return True", "import logging; logging.error('no weights here'); raise ValueError('why')")
    done = run("serve", str(write(tmp_path / "own", script)), "--port", "0")
    assert "no weights here" in done.stderr
    assert "Traceback" in done.stderr
    assert 'model_service.py", line 4, in load' in done.stderr


CHOICES = {
    "the one the script defines before one it imports": (
        "import tiinfer\nfrom base import Abc\nclass Own(Abc):\n    def predict(self, request):\n        return 'Own'\n", "Own"),
    "an imported one when there is no other": ("from base import *\n", "Abc"),
    "code-point order": (MODEL + "class Alpha(Own):\n    def predict(self, request):\n        return 'Alpha'\n", "Alpha"),
    "an alias is one class": (MODEL.replace("Own", "Zed") + "    def predict(self, r):\n        return 'Zed'\nAlias = Zed\n", "Zed"),
}  # fmt: skip
BASE = "import tiinfer\nclass Abc(tiinfer.Model):\n    def load(self): return True\n    def predict(self, request): return 'Abc'\n"


@pytest.mark.parametrize("name", CHOICES)
def test_class_choice(name: str, tmp_path: Path) -> None:
    script, expected = CHOICES[name]
    with ours(write(tmp_path / "own", script, base__py=BASE)) as server:
        assert server.ask(1) == Heard(200, expected)


def test_call_may_be_overridden(tmp_path: Path) -> None:
    with ours(
        write(tmp_path / "own", MODEL + "    def __call__(self, request):\n        return ['own', request]\n")
    ) as server:
        assert server.ask(1) == Heard(200, ["own", 1])


def test_a_generator_between_steps_is_the_scripts_own_affair(tmp_path: Path) -> None:
    steps = "    def predict(self, request):\n        return (n for n in range(3))\n    def postprocess(self, request):\n        return sum(request)\n"
    with ours(write(tmp_path / "own", MODEL + steps)) as server:
        assert server.ask(1) == Heard(200, 3)


# Workers


@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [((), {}, 2), ((), {"TI_INFERENCE_NUMS": "3"}, 3), (("--workers", "1"), {"TI_INFERENCE_NUMS": "3"}, 1)],
    ids=["self.workers", "TI_INFERENCE_NUMS", "--workers"],
)
def test_how_many_workers(flags: tuple[str, ...], env: dict[str, str], expected: int) -> None:
    with ours("tiinfer_workers", *flags, env=env) as server:
        wait_until(lambda: server.metric("franca_workers", state="ready") == expected)


def test_set_ti_inference_nums_in_the_script_wins_over_the_variable(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", MODEL + "tiinfer.set_ti_inference_nums(2)\n")
    with ours(folder, env={"TI_INFERENCE_NUMS": "1"}) as server:
        wait_until(lambda: server.metric("franca_workers", state="ready") == 2)


def test_16_clients_and_two_workers_every_answer_belongs_to_its_request() -> None:
    with ours("tiinfer_workers") as server:
        wait_until(lambda: server.metric("franca_workers", state="ready") == 2)
        wrong: list[Any] = []
        pids: set[int] = set()

        def client(number: int) -> None:
            with httpx.Client(base_url=server.url(), timeout=30) as own:
                for turn in range(25):
                    identity = number * 1000 + turn
                    body = {"id": identity, "sleep": (identity * 7919 % 10) / 1000}
                    answer = own.post("/inference" if turn % 2 else "/v1/models/m:predict", json=body).json()
                    pids.add(answer["pid"])
                    if answer["id"] != identity:
                        wrong.append((identity, answer))

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(client, range(16)))
        assert wrong == []
        assert len(pids) == 2


# Batches


def test_batches_are_lists_and_items_have_their_own_fate() -> None:
    with ours("tiinfer_batch", env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as server:
        answers = together(server, [{"id": n, "bad": n == 3} for n in range(8)])
        assert [answer.status for answer in answers] == [500 if n == 3 else 200 for n in range(8)]
        assert [answer.body["id"] for answer in answers if answer.status == 200] == [0, 1, 2, 4, 5, 6, 7]
        assert max(answer.body["batch"] for answer in answers if answer.status == 200) == 4


def test_max_batch_of_ours_may_say_less_than_the_script() -> None:
    with ours("tiinfer_batch", "--max-batch", "2", env={"TI_INFERENCE_MAX_BATCH_SIZE": "4"}) as server:
        answers = together(server, [{"id": n} for n in range(8)])
        assert max(answer.body["batch"] for answer in answers) == 2


def test_set_ti_inference_max_batch_size_in_the_script(tmp_path: Path) -> None:
    script = (
        PACKAGES / "tiinfer_batch" / "model_service.py"
    ).read_text() + "\n\ntiinfer.set_ti_inference_max_batch_size(40)\n"
    with ours(write(tmp_path / "own", script)) as server:
        answers = together(server, [{"id": n} for n in range(40)])
        assert max(answer.body["batch"] for answer in answers) > 32


def together(server: Served, values: list[Any]) -> list[Heard]:
    """The answers to values that wait together behind a slow one."""
    plug = threading.Thread(target=server.ask, args=({"id": -1, "sleep": 1.0},))
    plug.start()
    wait_until(lambda: server.metric("franca_requests_in_progress") == 1)
    time.sleep(0.05)
    answers = server.ask_all(values)
    plug.join()
    return answers


# Failures in answers


def test_f43_failures_in_dicts_are_counted(ops: Served) -> None:
    """F43: `error`, `predict_err` and `post_process_err` are a 200 as on the platform, and counted as failures."""
    for key in ("error", "predict_err", "post_process_err"):
        before = ops.metric("franca_answer_errors_total", key=key)
        assert ops.ask({key: "why"}) == Heard(200, {key: "why"})
        assert ops.metric("franca_answer_errors_total", key=key) == before + 1
    assert ops.ask({"deep": {"error": 1}}).status == 200
    total = sum(
        ops.metric("franca_answer_errors_total", key=key) for key in ("error", "predict_err", "post_process_err")
    )
    ops.ask({"fine": 1})
    assert total == sum(
        ops.metric("franca_answer_errors_total", key=key) for key in ("error", "predict_err", "post_process_err")
    )


def test_no_detail_leaves_the_server_and_the_log_has_it_all(ops: Served) -> None:
    answer = ops.client.post(
        "/inference", json={"op": "raise", "kind": "ValueError", "text": "hush"}, headers={"x-request-id": "seek-me"}
    )
    assert (answer.status_code, answer.text) == (500, "inference internal error")
    assert "hush" not in str(answer.headers)
    ops.wait_log("request seek-me: inference internal error\n(.*\n)*ValueError: hush")


def test_a_clients_fault_leaves_no_traceback(ops: Served) -> None:
    mark = len(ops.lines)
    assert ops.ask({"op": "raise", "kind": "ValidationError", "text": "x"}).status == 422
    assert ops.ask(content=b"{").status == 400
    time.sleep(0.2)
    assert not [line for line in ops.lines[mark:] if "Traceback" in line]


NANS = {
    "null": Heard(200, {"value": None, "most": None}),
    "platform": Heard(200, {"value": "<NaN>", "most": "<Infinity>"}),
    "error": Heard(500, "encoding error: encoding error"),
}


@pytest.mark.parametrize("nan", NANS)
def test_nan(nan: str) -> None:
    with ours("tiinfer_ops", "--nan", nan) as server:
        assert server.ask({"op": "return", "kind": "nan"}) == NANS[nan]
        warning = server.client.post("/inference", json={"op": "return", "kind": "nan"}).headers.get("x-franca-warning")
        assert (warning == "nan: 2 values replaced by null") == (nan == "null")


def test_json_that_is_too_large_is_413_too() -> None:
    with ours("tiinfer_ops", env={"FRANCA_MAX_JSON": "100"}) as server:
        assert server.ask("x" * 200) == Heard(413, "request body is too large")


def test_arrays_are_an_error_as_on_the_platform_unless_told_otherwise(tmp_path: Path) -> None:
    script = "import numpy, uuid, enum\n" + MODEL + (
        "    def predict(self, request):\n        return {'array': lambda: numpy.arange(3), 'single': lambda: numpy.float32(1.5),\n"
        "            'double': lambda: numpy.float64(1.5), 'uuid': lambda: uuid.UUID(int=1),\n"
        "            'enum': lambda: enum.Enum('E', 'a').a, 'surrogate': lambda: '\\ud800'}[request]()\n"
    )  # fmt: skip
    folder = write(tmp_path / "own", script)
    with ours(folder) as server:
        assert server.ask("array").status == server.ask("single").status == server.ask("surrogate").status == 500
        assert server.ask("double") == Heard(200, 1.5)
        assert server.ask("uuid") == Heard(200, "00000000-0000-0000-0000-000000000001")
        assert server.ask("enum") == Heard(200, 1)
    with ours(write(folder, script, franca__toml="strict_results = false\n")) as server:
        assert server.ask("array") == Heard(200, [0, 1, 2])
        assert server.ask("single") == Heard(200, 1.5)


# Without `franca tiinfer`


def test_franca_serve_serves_it_too() -> None:
    with serving("tiinfer_ops") as server:
        assert heard(server.client.post("/inference", json={"op": "about"})) == Heard(
            200, {"model_dir": True, "mapping": {"0": "zero"}, "cwd": "tiinfer_ops"}
        )


def test_a_script_under_another_name_is_model_service_to_itself(tmp_path: Path) -> None:
    script = (
        write(tmp_path / "own", MODEL + "    def predict(self, request):\n        return __name__\n")
        / "model_service.py"
    )
    other = script.rename(script.with_name("digits.py"))
    with serving(other) as server:
        assert server.client.post("/inference", json=1).json() == "model_service"


def test_drain_answers_what_was_accepted() -> None:
    with ours("tiinfer_ops") as server:
        slow: list[Heard] = []
        thread = threading.Thread(target=lambda: slow.extend(server.ask_all([{"op": "sleep", "seconds": 1}])))
        thread.start()
        wait_until(lambda: server.metric("franca_requests_in_progress") == 1)
        assert server.stop() == 0
        thread.join()
        assert slow == [Heard(200, {"op": "sleep", "seconds": 1})]
