"""Section 4 of the platform's specification: rows 20 to 31."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.modelarts import NODE, PT, config, package, returning
from support.server import panglot, serving


def test_work_at_import_and_siblings_of_common_names(tmp_path: Path) -> None:
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


def test_modules_of_a_package_may_be_imported_as_model(tmp_path: Path) -> None:
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
def test_more_than_one_leaf_class_or_none(tmp_path: Path, script: str, message: str) -> None:
    package(tmp_path, script, config("PyTorch"), helper__py="")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert re.search(message, done.stderr.splitlines()[-1]), done.stderr


def test_a_class_over_another_is_the_leaf_and_other_bases_do_not_count(tmp_path: Path) -> None:
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


def test_a_base_class_of_another_engine_works(tmp_path: Path) -> None:
    script = returning("self.model_path").replace(NODE, PT).replace("SingleNodeService", "PTServingBaseService")
    package(tmp_path, script, config("TensorFlow"), w__pth=b"")
    facts = json.loads(panglot("inspect", str(tmp_path), "--json").stdout)
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
def test_any_framework_under_any_base(tmp_path: Path, base: str) -> None:
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


def test_python_2_is_told_with_file_and_line(tmp_path: Path) -> None:
    done = panglot("serve", str(package(tmp_path, "import cPickle\nprint 'hello'\n", config("PyTorch"))), "--port", "0")
    assert done.returncode == 3
    assert "customize_service.py:2: syntax error: Missing parentheses in call to 'print'" in done.stderr


# 26: see test_defaults.py; 27 and 28: see test_config.py


def test_mxnet_scripts_get_a_list(tmp_path: Path) -> None:
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


def test_mxnet_itself_is_named_when_it_is_needed(tmp_path: Path) -> None:
    base = "from mms.model_service.mxnet_model_service import MXNetBaseService\n\n\n"
    script = base + "class Service(MXNetBaseService):\n    pass\n"
    done = panglot("serve", str(package(tmp_path, script, config("MXNet"))), "--port", "0")
    assert (done.returncode, "the package 'mxnet' is not installed" in done.stderr) == (3, True)


# 30: see test_defaults.py


def test_another_model_service_in_the_environment_or_beside_the_script_does_not_win(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "model_service").mkdir(parents=True)
    (tmp_path / "elsewhere" / "model_service" / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    script = NODE + "class Service(SingleNodeService):\n    pass\n"
    package(tmp_path / "p", script, config("MindSpore"))
    (tmp_path / "p" / "model_service").mkdir()
    (tmp_path / "p" / "model_service" / "__init__.py").write_text("")
    (tmp_path / "p" / "model_service" / "model_service.py").write_text("class SingleNodeService(object):\n    pass\n")
    with serving(tmp_path / "p", env={"PYTHONPATH": str(tmp_path / "elsewhere")}) as server:
        assert server.client.post("/", json={"a": 1}).json() == {"a": 1}
