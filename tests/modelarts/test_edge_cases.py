"""Section 4 of the platform's specification: every edge case a compatible server must reproduce, by its number."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.modelarts import config, grey, package
from support.server import Server, franca, serving, wait_until

MR_0105 = b'{"erno": "MR.0105", "msg": "Recognition failed", "words_result": {}}'
NODE = "from model_service.model_service import SingleNodeService\n"
TORCH = "from model_service.pytorch_model_service import PTServingBaseService\n"


def returning(expression: str, first: str = "") -> str:
    """A script whose answer is always an expression."""
    body = f"class Service(SingleNodeService):\n    def _inference(self, data):\n        return {expression}\n"
    return f"{NODE}{first}\n\n{body}"


def test_01_multipart_data_is_one_dict(tmp_path: Path) -> None:
    script = """
        from model_service.model_service import SingleNodeService

        class Service(SingleNodeService):
            def _preprocess(self, data):
                return [[key, name] for key, files in data.items() for name, file in files.items()]
    """
    with serving(package(tmp_path, script)) as server:
        answer = server.client.post("/", files={"image1": ("cat.jpg", b"1"), "images2": ("horse.jpg", b"2")})
        assert answer.json() == [["image1", "cat.jpg"], ["images2", "horse.jpg"]]


def test_02_values_are_real_bytes_io(tmp_path: Path) -> None:
    script = """
        import io

        import numpy
        from model_service.model_service import SingleNodeService
        from PIL import Image

        class Service(SingleNodeService):
            def _preprocess(self, data):
                file = data["f"]["x.png"]
                assert type(file) is io.BytesIO
                whole = file.getvalue()
                return {
                    "buffer": len(file.getbuffer()), "value": len(whole), "read": len(file.read()),
                    "size": Image.open(file).size, "again": file.seek(0),
                    "array": numpy.load(data["n"]["x.npy"]).tolist(),
                }
    """
    array = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".ljust(117)
        + b"\n\x01\x02\x03"
    )
    with serving(package(tmp_path, script)) as server:
        picture = grey(9)
        answer = server.client.post("/", files={"f": ("x.png", picture), "n": ("x.npy", array)})
        size = len(picture)
        assert answer.json() == {
            "buffer": size, "value": size, "read": size, "size": [8, 8], "again": 0, "array": [1, 2, 3],
        }  # fmt: skip


def test_03_and_04_text_beside_files_and_the_query_over_all(tmp_path: Path) -> None:
    script = """
        from model_service.model_service import SingleNodeService

        class Service(SingleNodeService):
            def _preprocess(self, data):
                return [float(data["min_score"]), list(data["image"])]
    """
    with serving(package(tmp_path, script)) as server:
        form = {"files": {"image": ("a.png", b"1")}, "data": {"min_score": "0.25"}}
        assert server.client.post("/", **form).json() == [0.25, ["a.png"]]
        assert server.client.post("/?min_score=0.75", **form).json() == [0.75, ["a.png"]]


def test_06_to_09_constructors_and_own_inference(tmp_path: Path) -> None:
    """6 default _inference of PyTorch, 7 one level skipped, 8 no parent constructor, 9 own `inference`."""
    scripts = {
        "six": TORCH + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        super().__init__(model_name, model_path)
        assert self.model is None and self.model_name == "serve" and self.model_path.endswith("w.pth")
        self.model = lambda value: value * 2
""",
        "seven": TORCH + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        super(PTServingBaseService, self).__init__(model_name, model_path)
        self.model = lambda value: value * 2
""",
        "eight": TORCH + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        self.net = lambda value: value * 2

    def _inference(self, batch):
        return {key: self.net(value) for key, value in batch.items()}
""",
        "nine": TORCH + """
class Service(PTServingBaseService):
    def __init__(self, model_name, model_path):
        pass

    def inference(self, request):
        return self._inference(self._preprocess(request, 2), request)

    def _preprocess(self, request, factor):
        return factor

    def _inference(self, factor, request):
        return {key: value * factor for key, value in request.items()}
""",
    }  # fmt: skip
    for name, script in scripts.items():
        with serving(package(tmp_path / name, script, config("PyTorch"), w__pth=b"")) as server:
            assert server.client.post("/", json={"a": 3, "b": "x"}).content == b'{"a": 6, "b": "xx"}', name


def test_10_errors_are_covered_by_the_table_of_requests(echo: Server) -> None:
    assert [echo.client.post("/", json={"raise": kind}).status_code for kind in ("TypeError", "ValueError")] == [
        400,
        500,
    ]


def test_11_numpy_is_encoded_and_with_the_strict_switch_an_error(echo: Server) -> None:
    assert echo.client.post("/", json={"return": "numpy"}).content == b'{"label": 7, "scores": [[0.5, 0.25]]}'
    assert echo.client.post("/", json={"return": "numpy_key"}).content == b'{"3": 1}'
    with serving("modelarts_echo", "--strict-results") as strict:
        for kind in ("numpy", "numpy_key"):
            answer = strict.client.post("/", json={"return": kind})
            assert (answer.status_code, answer.content) == (400, MR_0105)
        assert strict.client.post("/", json={"return": "chinese"}).status_code == 200


def test_12_a_json_string_is_encoded_again(echo: Server) -> None:
    assert echo.client.post("/", json={"return": "text"}).content == rb'"{\"already\": \"json\"}"'


def test_13_nan_is_null_with_a_warning_or_as_the_platform_wrote_it(echo: Server) -> None:
    answer = echo.client.post("/", json={"return": "nan"})
    assert answer.content == b'{"score": null, "inner": [null, 1.0, null]}'
    assert answer.headers["x-franca-warning"] == "nan: 3 values replaced by null"
    with serving("modelarts_echo", "--nan", "platform") as server:
        assert (
            server.client.post("/", json={"return": "nan"}).content == b'{"score": NaN, "inner": [Infinity, 1.0, NaN]}'
        )
    with serving("modelarts_echo", "--nan", "error") as server:
        assert server.client.post("/", json={"return": "nan"}).status_code == 500


def test_14_blanks_after_colons_and_commas(echo: Server) -> None:
    assert b'"list": [1, 2]' in echo.client.post("/", json={"return": "chinese"}).content


def test_text_that_cannot_be_sent_is_the_scripts_failure(echo: Server) -> None:
    answer = echo.client.post("/", json={"return": "surrogate"})
    assert (answer.status_code, answer.content) == (500, MR_0105)
    assert echo.client.post("/", json={"return": "none"}).content == b"null"


# 15 and 16: see test_loading.py


def test_17_an_error_in_del_does_not_break_shutdown(tmp_path: Path) -> None:
    script = (
        NODE
        + """
class Service(SingleNodeService):
    def __del__(self):
        self.sess.close()
"""
    )
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"a": 1}).status_code == 200
        assert server.stop() == 0


def test_18_state_in_self_and_a_fixed_file_belong_to_one_request_at_a_time(tmp_path: Path) -> None:
    script = """
        import time

        from model_service.pytorch_model_service import PTServingBaseService
        from PIL import Image

        class Service(PTServingBaseService):
            def __init__(self, model_name, model_path):
                self.capture = "test.png"
                self.seen = []

            def _preprocess(self, data):
                for key, files in data.items():
                    for name, file in files.items():
                        self.file_name = name
                        with open(self.capture, "wb") as target:
                            target.write(file.getvalue())
                return data

            def _inference(self, data):
                time.sleep(0.002)
                self.value = Image.open(self.capture).getpixel((3, 3))
                return data

            def _postprocess(self, data):
                self.seen.append(self.file_name)
                return {"name": self.file_name, "value": self.value}
    """
    package(tmp_path, script)
    before = {path.name for path in tmp_path.iterdir()} | {"__pycache__"}
    for flags in ([], ["--workers", "2"]):
        with serving(tmp_path, *flags) as server:

            def ask(number: int) -> None:
                with httpx.Client(base_url=server.url, timeout=30) as client:
                    for turn in range(12):
                        value = (number * 12 + turn) % 256
                        name = f"{number}-{turn}.png"
                        answer = client.post("/", files={"images": (name, grey(value), "image/png")})
                        assert answer.json() == {"name": name, "value": value}

            with ThreadPoolExecutor(16) as pool:
                list(pool.map(ask, range(16)))
    assert {path.name for path in tmp_path.iterdir()} <= before, "the script wrote into its private folder"


def test_19_the_working_directory_is_writable_and_holds_model_1(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import os

with open("model/1/labels.txt") as file:
    LABELS = file.read().split()


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        self.model_path = model_path

    def _inference(self, data):
        with open("scratch.txt", "a") as file:
            file.write("x")
        with open("model/labels.txt") as file:
            assert file.read().split() == LABELS
        with open(os.path.join(self.model_path, "written.txt"), "w") as file:
            file.write("x")
        return {"labels": LABELS, "here": os.getcwd(), "written": os.path.exists("model/1/written.txt"),
                "size": os.path.getsize("scratch.txt"), "library_path": os.environ["LD_LIBRARY_PATH"],
                "device": os.environ["DEVICE_ID"]}
"""
    )
    package(tmp_path / "p" / "model", script, config("MindSpore"), labels__txt="cat dog")
    with serving(tmp_path / "p", "--workers", "2") as server:
        server.wait_log("worker 1 ready")
        with ThreadPoolExecutor(4) as pool:
            told = list(pool.map(lambda _: httpx.post(server.url, json={"a": 1}).json(), range(24)))
        assert {(*answer["labels"], answer["written"], answer["device"]) for answer in told} == {
            ("cat", "dog", True, "0")
        }
        folders = {answer["here"] for answer in told}
        assert all(Path(folder).is_dir() for folder in folders)
        assert str(tmp_path) not in "".join(folders)
        for folder in folders:
            sizes = [answer["size"] for answer in told if answer["here"] == folder]
            assert max(sizes) == len(sizes), "nobody else writes there"
        [worker, _] = server.workers()
        worker.kill()
        wait_until(lambda: sum(Path(folder).exists() for folder in folders) < 2, 10, lambda: "its folder goes with it")
    assert not any(Path(folder).exists() for folder in folders)
    assert not Path(folders.pop()).parent.exists()
    assert (tmp_path / "p" / "model" / "written.txt").exists()


def test_20_and_21_work_at_import_and_siblings_of_common_names(tmp_path: Path) -> None:
    script = """
        import os
        import sys

        print("imported now")
        os.system("echo by a shell")
        sys.path.append(".")

        from config import NAME as CONFIG
        from core.net import NAME as CORE
        from model import NAME as MODEL
        from models.net import NAME as MODELS
        from src.net import NAME as SRC
        from utils import NAME as UTILS

        from model_service.model_service import SingleNodeService

        class Service(SingleNodeService):
            def _postprocess(self, data):
                import model.late

                return [CONFIG, CORE, MODEL, MODELS, SRC, UTILS, model.late.NAME]
    """
    names = ("config__py", "core___net__py", "model_____init____py", "models___net__py", "src___net__py", "utils__py")
    files = {name: f"NAME = {name.split('__')[0].rstrip('_')!r}\n" for name in names}
    files["model_____init____py"] = "NAME = 'model'\n"
    package(tmp_path, script, model___late__py="NAME = 'late'\n", **files)
    (tmp_path / "model" / "__init__.py").write_text("NAME = 'model'\n")
    with serving(tmp_path) as server:
        assert server.client.post("/", json={"a": 1}).json() == [
            "config",
            "core",
            "model",
            "models",
            "src",
            "utils",
            "late",
        ]
        server.wait_log(r"\| imported now")
        server.wait_log(r"\| by a shell")


def test_21_modules_of_a_package_may_be_imported_as_model(tmp_path: Path) -> None:
    """The folder above the package is on the import path, as the platform's server had its own there."""
    script = returning("NAME", "from model.helper import NAME\n")
    with serving(package(tmp_path, script, helper__py="NAME = 'helped'\n")) as server:
        assert server.client.post("/", json={"a": 1}).json() == "helped"


LEAVES = [
    ("two", NODE + "class One(SingleNodeService):\n    pass\n\n\nclass Two(SingleNodeService):\n    pass\n",
     r"customize_service.py:6: One \(line 2\) and Two \(line 6\) could all be the service \(fix: "),
    ("two, seen only when run", NODE + "One, Two = (type(name, (SingleNodeService,), {}) for name in ('One', 'Two'))\n",
     r"customize_service.py: One \(line 0\) and Two \(line 0\) could all be the service"),
    ("none", "class Service(object):\n    pass\n",
     r"customize_service.py:1: no class in it derives from a base class of the platform \(fix: class Service\(PTServ"),
    ("none, seen only when run", NODE + "import helper\n",
     r"there is no class in it that derives from a base class of the platform \(fix: derive one class from PTServ"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "message"), [row[1:] for row in LEAVES], ids=[row[0] for row in LEAVES])
def test_22_more_than_one_leaf_class_or_none(tmp_path: Path, script: str, message: str) -> None:
    package(tmp_path, script, config("PyTorch"), helper__py="")
    done = franca("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert re.search(message, done.stderr.splitlines()[-1]), done.stderr


def test_22_a_class_over_another_is_the_leaf_and_other_bases_do_not_count(tmp_path: Path) -> None:
    script = (
        NODE
        + """
from helper import Helped
from model_service.pytorch_model_service import PTServingBaseService
from model_service.tfserving_model_service import TfServingBaseService


class Middle(Helped):
    pass


class Service(Middle):
    pass
"""
    )
    helper = NODE + "class Helped(SingleNodeService):\n    def _inference(self, data):\n        return 'helped'\n"
    with serving(package(tmp_path, script, helper__py=helper)) as server:
        assert server.client.post("/", json={"a": 1}).json() == "helped"


def test_23_a_base_class_of_another_engine_works(tmp_path: Path) -> None:
    script = returning("self.model_path").replace(NODE, TORCH).replace("SingleNodeService", "PTServingBaseService")
    package(tmp_path, script, config("TensorFlow"), w__pth=b"")
    facts = json.loads(franca("inspect", str(tmp_path), "--json").stdout)
    assert facts["facts"]["engine"] == ["PyTorch"]
    assert "config.json says TensorFlow, but PTServingBaseService belongs to PyTorch" in facts["problems"][0]
    with serving(tmp_path) as server:
        assert server.client.post("/", json={"a": 1}).json() == str(tmp_path / "w.pth")


@pytest.mark.parametrize(
    "base",
    [
        "model_service.tfserving_model_service:TfServingBaseService",
        "model_service.caffe_model_service:CaffeBaseService",
    ],
)
def test_24_any_framework_under_any_base(tmp_path: Path, base: str) -> None:
    module, name = base.split(":")
    script = f"""
        import numpy
        from sklearn.linear_model import LinearRegression
        from {module} import {name}

        class Service({name}):
            def __init__(self, model_name, model_path):
                super().__init__(model_name, model_path)
                self.regression = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])

            def _inference(self, data):
                return self.regression.predict(numpy.array(data["x"]).reshape(-1, 1))
    """
    with serving(package(tmp_path, script, config(name.partition("Base")[0]))) as server:
        assert server.client.post("/", json={"x": [3.0]}).json() == pytest.approx([6.0])


def test_25_python_2_is_told_with_file_and_line(tmp_path: Path) -> None:
    done = franca("serve", str(package(tmp_path, "import cPickle\nprint 'hello'\n", config("PyTorch"))), "--port", "0")
    assert done.returncode == 3
    assert "customize_service.py:2: syntax error: Missing parentheses in call to 'print'" in done.stderr


# 26: see test_defaults.py; 27 and 28: see test_config.py


def test_29_mxnet_scripts_get_a_list(tmp_path: Path) -> None:
    script = """
        import mms.log
        from mms.model_service.mxnet_model_service import MXNetBaseService
        from mms.utils.mxnet import image, ndarray

        logger = mms.log.get_logger()

        class Service(MXNetBaseService):
            def __init__(self, model_name, model_dir, manifest, gpu=None):
                self.signature = manifest["Model"]["Signature"]
                logger.info("constructed %s", model_name)

            def _preprocess(self, data):
                assert type(data) is list
                return [len(value) if isinstance(value, bytes) else value for value in data]

            def _inference(self, data):
                return {"data": data, "first": self.signature["inputs"][0]["data_name"]}

            def _postprocess(self, data):
                return data
    """
    inputs = [{"data_name": "b", "data_shape": [0, 3]}, {"data_name": "a", "data_shape": [0, 3]}]
    manifest = json.dumps({"Model": {"Signature": {"inputs": inputs}}})
    with serving(package(tmp_path, script, config("MXNet"), MANIFEST__json=manifest)) as server:
        answer = server.client.post("/", files={"a": ("a.png", b"123"), "b": ("b.png", b"12345")})
        assert answer.json() == {"data": [5, 3], "first": "b"}
        assert server.client.post("/", json={"a": [1], "b": [2]}).json()["data"] == [[2], [1]]
        server.wait_log("constructed serve")


def test_29_mxnet_itself_is_named_when_it_is_needed(tmp_path: Path) -> None:
    base = "from mms.model_service.mxnet_model_service import MXNetBaseService\n\n\n"
    script = base + "class Service(MXNetBaseService):\n    pass\n"
    done = franca("serve", str(package(tmp_path, script, config("MXNet"))), "--port", "0")
    assert (done.returncode, "the package 'mxnet' is not installed" in done.stderr) == (3, True)


# 30: see test_defaults.py


def test_31_another_model_service_in_the_environment_or_beside_the_script_does_not_win(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "model_service").mkdir(parents=True)
    (tmp_path / "elsewhere" / "model_service" / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    script = NODE + "class Service(SingleNodeService):\n    pass\n"
    package(tmp_path / "p", script, config("MindSpore"))
    (tmp_path / "p" / "model_service").mkdir()
    (tmp_path / "p" / "model_service" / "__init__.py").write_text("")
    (tmp_path / "p" / "model_service" / "model_service.py").write_text("class SingleNodeService(object):\n    pass\n")
    with serving(tmp_path / "p", env={"PYTHONPATH": str(tmp_path / "elsewhere")}) as server:
        assert server.client.post("/", json={"a": 1}).json() == {"a": 1}


# Not in the table


def test_the_four_lines_of_the_platforms_log(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import log
import logging
import model_service.log as other
from metric.metrics_manager import MetricsManager

logger = log.getLogger(__name__)
assert other.getLogger(__name__) is logger


class Service(SingleNodeService):
    def _inference(self, data):
        logger.info("told by the platform's logger")
        logging.getLogger("plain").info("not told by the plain one")
        logging.getLogger("plain").warning("told as a warning")
        key = self.model_name + "_LatencyInference"
        if key in MetricsManager.metrics:
            MetricsManager.metrics[key].update(1.5)
        return [MetricsManager.metrics[key].last, "x" in MetricsManager.metrics]
"""
    )
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"a": 1}).json() == [1.5, False]
        for words in ("preprocess time: ", "infer time: ", "postprocess time: ", "latency: "):
            server.wait_log(rf"\| 20\d\d-.* \[MainThread  \] \[model_service.py:\d+\] - INFO - {words}\d+\.\d+ms")
        server.wait_log(r"\[MainThread  \] \[customize_service.py:\d+\] - INFO - told by the platform's logger")
        server.wait_log("told as a warning")
        assert "not told by the plain one" not in server.log


def test_a_generator_between_the_steps_is_the_scripts_own_business(tmp_path: Path) -> None:
    script = (
        NODE
        + """
class Service(SingleNodeService):
    def _inference(self, data):
        for value in data["x"]:
            yield value * 2

    def _postprocess(self, data):
        return list(data)
"""
    )
    with serving(package(tmp_path, script)) as server:
        assert server.client.post("/", json={"x": [1, 2]}).json() == [2, 4]


def test_a_call_that_ends_the_process_costs_one_request(tmp_path: Path) -> None:
    script = (
        NODE
        + """
import os


class Service(SingleNodeService):
    def _inference(self, data):
        if data.get("die"):
            os._exit(9)
        return data
"""
    )
    with serving(package(tmp_path, script)) as server:
        answer = server.client.post("/", json={"die": 1})
        assert (answer.status_code, answer.content) == (500, MR_0105)
        wait_until(lambda: server.client.post("/", json={"a": 1}).json() == {"a": 1})


def test_a_constructor_of_another_shape_is_told(tmp_path: Path) -> None:
    script = NODE + "class Service(SingleNodeService):\n    def __init__(self, model_path):\n        pass\n"
    done = franca("serve", str(package(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    assert "customize_service.py:3: Service cannot be constructed with (model_name, model_path)" in done.stderr
    assert "def __init__(self, model_name, model_path)" in done.stderr


def test_inline_runs_it_too(tmp_path: Path) -> None:
    script = returning("os.getpid()", "import os\n")
    with serving(package(tmp_path, script), "--inline") as server:
        assert server.client.post("/", json={"a": 1}).json() == server.process.pid


def test_requests_wait_while_a_new_version_loads(tmp_path: Path) -> None:
    script = returning("'one'")
    package(tmp_path, script)
    with serving(tmp_path, "--reload") as server:
        answers: list[str] = []
        done = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                while not done.is_set():
                    answers.append(client.post("/", json={"a": 1}).json())
                    time.sleep(0.01)

        thread = threading.Thread(target=ask)
        thread.start()
        package(tmp_path, script.replace("one", "two"))
        wait_until(lambda: "two" in answers, 15, lambda: server.log)
        done.set()
        thread.join()
        assert set(answers) == {"one", "two"}
        assert answers == sorted(answers)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the front needs 3.11")
def test_the_oldest_python_runs_it_too(tmp_path: Path) -> None:
    from support import interpreters

    version, python = next(iter(interpreters.found().items()))
    script = returning("list(sys.version_info[:2])", "import sys\n")
    with serving(package(tmp_path, script), "--python", python) as server:
        assert server.client.post("/", files={"f": ("a", b"1")}).json() == [int(part) for part in version.split(".")]
