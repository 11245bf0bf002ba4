"""What scripts of the platform rely on without saying so, case by case."""

from __future__ import annotations

import base64
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from support.evals import GOOD, IMPORTS, ask, group, package, result, returning, single
from support.server import Server, panglot, serving, wait_until


def png(width: int, height: int, channels: int = 3) -> bytes:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return cv2.imencode(".png", np.full(shape, 7, dtype=np.uint8))[1].tobytes()


@pytest.mark.document("evals.12")
def test_the_app_is_known_in_every_call(rows: Server) -> None:
    assert result(rows, single())["app"] == "rows"


THREADED = """
import threading
from evals.utils import CTX


def in_thread(reqs):
    found = []
    thread = threading.Thread(target=lambda: found.append((CTX.app, hasattr(CTX, "reqID"))))
    thread.start()
    thread.join()
    return found * len(reqs)
"""


def test_the_app_is_the_process_s_the_rest_the_thread_s(tmp_path: Path) -> None:
    script = returning("[{'code': 0, 'message': '', 'result': found} for found in in_thread(reqs)], 0, ''", THREADED)
    with serving(package(tmp_path, script, panglot__toml="[evals]\napp = 'mine'\n")) as server:
        assert result(server, single()) == ["mine", False]


RENAMING = """
import os


def renamed(configs):
    path = configs["model_files"]["deploy.symbol.json"]
    with open(path, "a") as file:
        file.write("!")
    target = path.replace("deploy.symbol", "deploy-symbol")
    os.rename(path, target)
    return open(target).read()
"""


def test_model_files_are_fresh_copies_for_every_start(tmp_path: Path) -> None:
    script = returning(GOOD % "model", RENAMING, "renamed(configs), 0, ''")
    folder = package(tmp_path, script, models___deploy__symbol__json="symbol")
    for _ in range(2):
        with serving(folder, "--workers", "2") as server:
            assert result(server, single()) == "symbol!"
            server.workers()[0].kill()
            wait_until(lambda server=server: server.log.count("ready after") == 3)
            assert result(server, single()) == "symbol!"
    assert (folder / "models" / "deploy.symbol.json").read_text() == "symbol"


def test_the_command_line_is_empty(rows: Server) -> None:
    assert result(rows, single())["argv"] == [""]
    assert ask(rows, single(params={"case": "argparse"})).status_code == 200


def test_the_message_decides(rows: Server) -> None:
    for code, message in ((406, ""), (400, None), (599, "")):
        params = {"case": "whole", "code": code, "message": message, "rets": "rets"}
        assert ask(rows, single(params=params)).status_code == 200


IMAGES = {
    "plain": (png(33, 40), [40, 33, 3]),
    "grey": (png(50, 50, 1), [50, 50, 3]),
    "with alpha": (png(50, 50, 4), [50, 50, 3]),
    "largest": (png(4999, 33), [33, 4999, 3]),
    "narrow": (png(32, 100), "image [[[7 7 7]"),
    "low": (png(100, 32), "image [[[7 7 7]"),
    "wide": (png(5000, 33), "image  is too large, should be in 4999x4999, less than 10MB"),
    "garbage": (b"no picture", "cv2 load  failed"),
    "10 MiB": (png(40, 40) + b"\0" * (10485760 - len(png(40, 40))), [40, 40, 3]),
    "10 MiB and one": (b"\0" * 10485761, "image  is too large, should be in 4999x4999, less than 10MB"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_load_image(rows: Server, name: str) -> None:
    body, expected = IMAGES[name]
    answer = ask(rows, single(body, {"case": "image"}))
    if isinstance(expected, list):
        assert answer.json()["result"] == expected
    else:
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(expected)


def test_an_empty_body_is_an_error_of_opencv(rows: Server) -> None:
    answer = ask(rows, single(b"", {"case": "image"}))
    assert (answer.status_code, answer.json()) == (599, {"error": "cv2.error"})


ERRORS = """
from evals.utils.error import *
print(ErrorCV2ImageRead(""), ErrorImageTooLarge(""), ErrorOutOfBatchSize(4), ErrorConfig("x"), sep="|", end="|")
print(ErrorFileNotExist("/p"), ErrorBase().code, ErrorBase(), ErrorForwardInference().code, sep="|", end="|")
kinds = (ErrorImageTooSmall, ErrorImageNdim, ErrorInvalidPTS, ErrorTransformImage, ErrorNoPTS)
print({kind(1).code for kind in kinds})
"""


def test_texts_of_errors() -> None:
    shims = panglot("shims", "evals").stdout.strip()
    done = subprocess.run(
        [sys.executable, "-c", ERRORS], env={"PYTHONPATH": shims}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().split("|") == [
        "cv2 load  failed",
        "image  is too large, should be in 4999x4999, less than 10MB",
        "eval request out of batch_size 4",
        "no x config set",
        "file not exist: /p",
        "599",
        "Unknown Error",
        "500",
        "{400}",
    ]


def test_an_error_that_is_not_caught_is_599(rows: Server) -> None:
    answer = ask(rows, single(params={"case": "raise", "error": "base"}))
    assert (answer.status_code, answer.json()) == (599, {"error": "base"})


def test_a_bad_picture_keeps_its_place_in_a_batch(rows: Server) -> None:
    bodies = [png(40, 40), b"garbage", png(50, 40)]
    rets = ask(rows, [single(body, {"case": "image"}) for body in bodies], "/v1/batch").json()
    assert [ret["code"] for ret in rets] == [0, 400, 0]
    assert rets[1] == {"code": 400, "message": "cv2 load  failed", "result": {}}


CLUSTER = "[{'code': 0 if 'datas' in req else 522, 'message': 'no datas', 'result': {}} for req in reqs], 0, ''"


def test_data_is_not_renamed(tmp_path: Path) -> None:
    with serving(package(tmp_path, returning(CLUSTER), panglot__toml="[evals]\nplatform_codes = true\n")) as server:
        answer = ask(server, group(b"a"))
        assert (answer.status_code, answer.json()["code"]) == (200, 500)


def test_a_body_takes_the_place_of_the_result(rows: Server) -> None:
    assert ask(rows, single(params={"case": "body"})).content == b"\x00\x01raw"


NUMBERS = [3.0, 0.1, 2**53 - 1, -7, 1e300]


def test_numbers_keep_their_value(rows: Server) -> None:
    assert result(rows, single(params={"numbers": NUMBERS}))["params"] == {"numbers": NUMBERS}


@pytest.mark.document("evals.20", "evals.21")
@pytest.mark.parametrize("value", [{}, [], [1], "text", 7, True, {"deep": [{}]}])
def test_params_and_attribute_are_any_json(rows: Server, value: object) -> None:
    seen = result(rows, {**single(attribute=value), "params": value})
    assert (seen["params"], seen["attribute"]) == (value, [value])


def test_absent_and_null_are_empty(rows: Server) -> None:
    for value in (single(), {**single(attribute=None), "params": None}):
        seen = result(rows, value)
        assert (seen["params"], seen["attribute"]) == ({}, [{}])


@pytest.mark.document("evals.13", "evals.14")
@pytest.mark.parametrize(
    "created", ["{}, 0, None", "{}, 200, 'Success'", "{}, 0, {'any': 1}", "[], 0, ''", "None, 0, ''"]
)
def test_a_start_that_succeeded(tmp_path: Path, created: str) -> None:
    with serving(package(tmp_path, returning(GOOD % "1", create=created))) as server:
        assert result(server, single()) == 1


FAILED_STARTS = {
    "a code": (returning(GOOD % 1, create="{}, 400, 'no such model'"), "did not start with code 400: no such model"),
    "a dict": (returning(GOOD % 1, create="{}, 599, {'why': 'x'}"), "did not start with code 599"),
    "a bool": (returning(GOOD % 1, create="{}, False, 'odd'"), "did not start with code False: odd"),
    "an exception": (returning(GOOD % 1, create="1 // 0"), "ZeroDivisionError"),
    "an exit": (returning(GOOD % 1, "import sys", "sys.exit(4)"), "exit code 4"),
    "a shape": (returning(GOOD % 1, create="{}"), "create_net"),
    "a missing file": (returning(GOOD % 1, create="file_check(configs['model_files'], 'a'), 0, ''"), "no a config set"),
    "an import": (returning(GOOD % 1, "import no_such_library"), "no_such_library"),
    "a module of the platform": (returning(GOOD % 1, "from evals.caffe_base import net"), "no evals.caffe_base"),
    "a helper": (returning(GOOD % 1, "from evals import helper"), "ZeroDivisionError"),
}


@pytest.mark.document("evals.14")
@pytest.mark.parametrize("name", FAILED_STARTS)
def test_a_start_that_failed(tmp_path: Path, name: str) -> None:
    script, words = FAILED_STARTS[name]
    folder = package(tmp_path, script, helper__py="1 // 0\n")
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert words in done.stderr
    assert "error: " in done.stderr.splitlines()[-1]


def test_stdout_is_nobody_s_channel(rows: Server) -> None:
    rows.wait_log("data dir: stdout is nobody's channel")
    assert ask(rows, single()).status_code == 200


FIXED = "open('/workspace/serving/python/evals/template.txt').read() + open('/workspace/serving/models/m.txt').read()"


@pytest.mark.document("evals.39")
def test_paths_of_the_platform(tmp_path: Path) -> None:
    """Named at start; with --link-paths they lead to the package. Relative ones are seen from there in any case."""
    folder = package(
        tmp_path / "package", returning(GOOD % "model", create="open('python/evals/template.txt').read(), 0, ''"),
        template__txt="from a template", models___m__txt="and a model",
    )  # fmt: skip
    with serving(folder) as server:
        assert result(server, single()) == "from a template"
    package(folder, returning(GOOD % "model", create=f"{FIXED}, 0, ''"))
    if Path("/workspace/serving").exists():
        pytest.skip("this machine has a /workspace/serving of its own")
    with serving(folder, "--link-paths") as server:
        assert result(server, single()) == "from a templateand a model"
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert "--link-paths makes /workspace/serving lead to this package" in done.stderr


WRITING = """
import os


def written(configs):
    path = os.path.join(configs["workspace"], "saved.npy")
    with open(path, "w") as file:
        file.write("kept")
    assert os.path.basename(configs["workspace"]) == "init"
    open("beside.txt", "w").close()
    return open(path).read()
"""


@pytest.mark.document("evals.11")
def test_the_workspace_can_be_written(tmp_path: Path) -> None:
    script = returning(GOOD % "model", WRITING, "written(configs), 0, ''")
    chosen = tmp_path / "chosen"
    folder = package(tmp_path / "package", script)
    with serving(folder, "--workers", "2") as server:
        assert result(server, single()) == "kept"
    assert not (folder / "beside.txt").exists()
    (folder / "panglot.toml").write_text(f"[evals]\nworkspace = '{chosen}'\n")
    with serving(folder) as server:
        assert result(server, single()) == "kept"
    assert (chosen / "init" / "saved.npy").read_text() == "kept"


STATE = """
import config
from evals import config as same
from evals.config import Config

config.Config.PLATFORM = "changed"
"""


CONFIG = """
class Config:
    PLATFORM = "first"
    N = 0

    @classmethod
    def count(cls):
        cls.N += 1
        return cls.N
"""


@pytest.mark.document("evals.40")
def test_state_is_kept_and_modules_are_one(tmp_path: Path) -> None:
    """`import config` and `evals.config` are the same module, as they were on Python 2."""
    script = returning(GOOD % "[Config.PLATFORM, same is config, Config.count()]", STATE)
    with serving(package(tmp_path, script, config__py=CONFIG)) as server:
        assert result(server, single()) == ["changed", True, 1]
        assert result(server, single()) == ["changed", True, 2]


def test_text_in_and_floats_out(tmp_path: Path) -> None:
    before = "import json, struct\n\n\ndef packed(req):\n    values = json.loads(req['data']['body'])['values']\n"
    before += "    return struct.pack('>%df' % len(values), *values)"
    script = returning("[{'code': 0, 'message': '', 'result': {}, 'body': packed(req)} for req in reqs], 0, ''", before)
    with serving(package(tmp_path, script)) as server:
        answer = ask(server, single(b'{"values": [1.5, -2.0]}'))
        assert answer.headers["content-type"] == "application/octet-stream"
        assert struct.unpack(">2f", answer.content) == (1.5, -2.0)


def test_the_decorator_adds_a_header_to_every_result(tmp_path: Path) -> None:
    before = "LAST = []\n\n\ndef keep(rets):\n    LAST.append(rets)\n    return rets"
    script = returning("keep([{'result': LAST[-1][0].get('header') if LAST else None} for req in reqs]), 0, ''", before)
    with serving(package(tmp_path, script, panglot__toml="[evals]\napp = 'face'\n")) as server:
        ask(server, single())
        assert result(server, single()) == {"X-Origin-A": ["FACE:1"]}


def test_ids_scripts_see(rows: Server) -> None:
    seen = result(rows, single())
    assert (seen["init_id"], seen["reqid"]) == ("net_init", "xx")


LOGGING = """
def logged(reqs):
    CTX.logger.info("with an id", extra={"reqid": CTX.reqID})
    logger.warning("without one")
    return reqs
"""


@pytest.mark.document("evals.34")
def test_the_log_names_the_request_all_the_same(tmp_path: Path) -> None:
    script = returning(GOOD.replace("in reqs", "in logged(reqs)") % 1, LOGGING)
    with serving(package(tmp_path, script)) as server:
        ask(server, single(), headers={"x-reqid": "this-one"})
        server.wait_log(r"\[this-one\] INFO .*eval.py:\d+: with an id")
        server.wait_log(r"\[this-one\] WARNING .*eval.py:\d+: without one")
    assert "Logging error" not in server.log


def test_no_answer_is_empty(rows: Server) -> None:
    for value in (single(), group(b"x"), single(params={"case": "raise", "error": "value"})):
        assert int(ask(rows, value).headers["content-length"]) > 0


@pytest.fixture(scope="module")
def starred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    names = "csv functools json logging os threading traceback logger ErrorConfig ErrorFileNotExist CollectorRegistry "
    names += "generate_latest Histogram error CTX REGISTRY MONITOR_RESPONSETIME metrics"
    script = IMPORTS + "\n\n@create_net_handler\ndef create_net(configs):\n    return {}, 0, ''\n\n\n"
    script += "@net_inference_handler\ndef net_inference(model, reqs):\n"
    script += f"    kinds = [type(each).__name__ for each in ({', '.join(names.split())})]\n"
    script += (
        "    return [{'result': [kinds, os.path.dirname(__file__), __name__, __package__]} for _ in reqs], 0, ''\n"
    )
    with serving(package(tmp_path_factory.mktemp("starred"), script)) as server:
        yield server


def test_what_comes_with_a_star(starred: Server) -> None:
    kinds, folder, name, parent = result(starred, single())
    assert kinds[:8] == ["module"] * 7 + ["Logger"]
    assert (name, parent) == ("evals.eval", "evals")
    assert Path(folder).is_dir()


def test_a_request_waits_for_the_successor_of_a_worker_that_died(rows: Server) -> None:
    """A worker that dies is replaced, with its files, while requests wait."""
    rows.workers()[0].kill()
    assert ask(rows, single()).status_code == 200


def test_a_body_of_base64_may_be_large(rows: Server) -> None:
    body = base64.b64encode(b"x" * 3_000_000).decode()
    assert len(result(rows, {"data": {"body": body}})["body"][0]) == 3_000_000
