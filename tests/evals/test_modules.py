"""What scripts import: every name of the platform's package, used as scripts use it, without a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from support import interpreters
from support.evals import GOOD, ask, group, package, result, returning, single
from support.server import panglot, serving

INVENTORY = {
    "evals.utils": "create_net_handler net_preprocess_handler net_inference_handler net_init_handler CTX file_check "
    "value_check infer_input_unmarshal infer_output_marshal parse_params_file parse_crop_size _make_synset _make_tag "
    "REGISTRY MONITOR_RESPONSETIME metrics monitor_rt_load monitor_rt_transform monitor_rt_forward monitor_rt_post "
    "monitor_rt_inference csv functools json logging os threading traceback logger ErrorConfig ErrorFileNotExist "
    "CollectorRegistry generate_latest Histogram error",
    "evals.utils.error": "ErrorBase ErrorConfig ErrorFileNotExist ErrorCV2ImageRead ErrorImageTooSmall ErrorImageNdim "
    "ErrorImageTooLarge ErrorInvalidPTS ErrorOutOfBatchSize ErrorTransformImage ErrorNoPTS ErrorForwardInference",
    "evals.utils.image": "load_image load_image_roi load_image_roi_by_4pts check_valid_pts",
    "evals.utils.logger": "logger init_logger",
    "evals.utils.header": "Header wrap_header",
    "evals.mxnet_base.net": "NetConfig parse_infer_config load_labels",
}


@pytest.fixture(scope="module")
def shims() -> str:
    return panglot("shims", "evals").stdout.strip()


def run(shims: str, code: str, *arguments: str, python: str = sys.executable) -> Any:
    """What the code prints as JSON."""
    environment = {**os.environ, "PYTHONPATH": shims}
    done = subprocess.run(
        [python, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.document("evals.02", "evals.28")
@pytest.mark.parametrize("module", INVENTORY)
def test_the_names_are_there(shims: str, module: str) -> None:
    code = f"import json\nfrom {module} import {', '.join(INVENTORY[module].split())}\nprint(json.dumps(1))"
    assert run(shims, code) == 1


CHECKS = """
import json, os, sys, tempfile
from evals.utils import *
from evals.utils import _make_synset, _make_tag

folder = tempfile.mkdtemp()
path = os.path.join(folder, "labels.csv")
open(path, "w").write("0,cat\\n1,dog\\n")
tags = os.path.join(folder, "tags.json")
open(tags, "w").write('{"a": 1}')


def tried(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except error.ErrorBase as problem:
        return [problem.code, problem.message]


class Headers:
    def marshal(self):
        return {"xlog": []}


print(json.dumps([
    value_check({"a": 0}, "a"), tried(value_check, {"a": None}, "a"), value_check({}, "a", False, 7),
    file_check({"f": path}, "f") == path, tried(file_check, {}, "f"), file_check({}, "f", must=False),
    tried(file_check, {"f": "/p"}, "f", must=False),
    parse_params_file("a-b-0012.params"), parse_params_file("weight.params"),
    parse_params_file("/m-1/models/weight.params"), parse_params_file("/m-1/models/a-2.params"),
    parse_crop_size({}, {"cropSize": "224"}), parse_crop_size({}, {"cropSize": "224x300"}),
    parse_crop_size({"image_width": 5}), parse_crop_size({}, None, {"image_width": 6, "image_height": 7}),
    parse_crop_size({}, default_image_width=8), parse_crop_size({}, default_image_width=8, default_image_height=9),
    _make_synset(path), _make_tag(tags),
    infer_input_unmarshal({}, '{"reqid": "x", "reqs": [1, 2]}'),
    json.loads(infer_output_marshal([{"code": 0, "result": {"x": 1}}], Headers())),
]))
"""


def test_helpers(shims: str) -> None:
    assert run(shims, CHECKS) == [
        0, [400, "no a config set"], 7, True, [400, "no f config set"], None, [400, "file not exist: /p"],
        ["a-b", 12], ["weight", 0], ["/m-1/models/weight", 0], ["/m-1/models/a", 2],
        [224, 224], [224, 300], [5, 5], [6, 7], [8, 8], [8, 9],
        [["0", "cat"], ["1", "dog"]], {"a": 1}, [1, 2],
        {"results": [{"code": 0, "result": '{"x": 1}'}], "headers": {"xlog": []}},
    ]  # fmt: skip


DECORATED = """
import json
from evals.utils import *


@create_net_handler
def create_net(configs):
    "Makes it."
    return {"app": CTX.app, "id": CTX.reqID}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    if reqs == ["raise"]:
        raise ErrorConfig("x")
    return [{"result": CTX.reqID} for req in reqs], 0, ""


@net_preprocess_handler
def net_preprocess(model, req):
    return req + CTX.reqID, 0, ""


model, code, message = create_net({"app": "face"})
print(json.dumps([
    create_net.__doc__, model, code, net_inference(model, [1]), net_inference(model, [1], "id"),
    net_inference(model, ["raise"]), net_preprocess(model, "req"), net_preprocess(model, "req", "id"),
]))
"""


@pytest.mark.document("evals.02", "evals.28")
def test_decorated_functions_called_by_hand(shims: str) -> None:
    """As the `__main__` of scripts does, with two arguments."""
    documented, model, code, plain, with_id, raised, *preprocessed = run(shims, DECORATED)
    assert (documented, model, code) == ("Makes it.", {"app": "face", "id": "net_init"}, 0)
    header = {"X-Origin-A": ["FACE:1"]}
    assert plain == [[{"result": "", "header": header}], 0, ""]
    assert with_id[0][0]["result"] == "id"
    assert raised == [[], 599, "no x config set"]
    assert preprocessed == [["req", 0, ""], ["reqid", 0, ""]]


OLD = """
import helper
import sys
reload(sys)
sys.setdefaultencoding("utf-8")
"""


@pytest.mark.parametrize("version", interpreters.found())
def test_on_every_python(shims: str, version: str, tmp_path: Path) -> None:
    """The names, and a server whose worker runs there, with nothing but the standard library."""
    python = interpreters.found()[version]
    assert run(shims, DECORATED, python=python)[1] == {"app": "face", "id": "net_init"}
    script = returning(GOOD % "[len(req['data']['body']), helper.RANGE, helper.sub.NAME, unicode(1)]", OLD)
    files = {"helper__py": "import sub\nRANGE = list(xrange(2))\n", "sub__py": "NAME = __name__\n"}
    with serving(package(tmp_path, script, **files), "--python", python) as server:
        assert result(server, single(b"hello")) == [5, [0, 1], "evals.sub", "1"]
        assert ask(server, group(b"hello")).status_code == 599
        assert ask(server, {"data": {"uri": "http://127.0.0.1/"}}).status_code == 599


METRICS = """
import json
from evals.utils import *
monitor_rt_load().observe(0.05)
monitor_rt_transform(2).observe(1)
monitor_rt_forward(2, error="500").observe(100)
monitor_rt_post().observe(0)
monitor_rt_inference(number=3).observe(0.5)
import evals
print(json.dumps(evals.metrics()))
"""


def test_the_text_of_the_metrics(shims: str) -> None:
    text = run(shims, METRICS)
    name = "ava_serving_eval_response_time"
    assert f'{name}_count{{method="py.load",error="NIL",number="1"}} 1' in text
    assert f'{name}_bucket{{method="py.forward",error="500",number="2",le="60.0"}} 0' in text
    assert f'{name}_bucket{{method="py.forward",error="500",number="2",le="+Inf"}} 1' in text
    assert {f"py.{method}" for method in ("load", "transform", "forward", "post", "inference")} == {
        line.split('"')[1] for line in text.splitlines() if line.startswith(name + "_sum")
    }


PICTURES = """
import json, sys
from evals.utils.image import *
from evals.utils.error import ErrorBase

body = open(sys.argv[1], "rb").read()


def tried(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except ErrorBase as problem:
        return type(problem).__name__


inside = load_image_roi("", (10, 20, 20, 40), body=body)
outside = load_image_roi("", (-10, -10, 10, 10), body=body)
corners = [(10, 20), (20, 20), (20, 40), (10, 40)]
print(json.dumps([
    load_image(sys.argv[1]).shape, load_image(sys.argv[1], 50.0).shape, tried(load_image, sys.argv[1], 1.1),
    tried(load_image, "/nowhere"), inside.shape, int(inside.min()), outside.shape, outside[0, 0].tolist(),
    outside[-1, -1].tolist(), load_image_roi("", (10, 20, 20, 40), 2.0, body=body).shape,
    load_image_roi("", (10, 20, 20, 40), 1.0, 1, body=body).shape, load_image_roi_by_4pts("", corners, body=body).shape,
    [tried(check_valid_pts, bad) for bad in ([], None, corners[:3], list(reversed(corners)), [1, 2, 3, 4])],
]))
"""


def test_pictures(shims: str, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    cv2.imwrite(str(file), np.full((60, 80, 3), 9, dtype=np.uint8))
    assert run(shims, PICTURES, str(file)) == [
        [60, 80, 3], [60, 80, 3], "ErrorImageTooLarge", "ErrorFileNotExist", [20, 10, 3], 9, [20, 20, 3], [0, 0, 0],
        [9, 9, 9], [40, 20, 3], [20, 20, 3], [20, 10, 3], ["ErrorInvalidPTS"] * 5,
    ]  # fmt: skip


MXNET = """
import json, sys
from evals.mxnet_base import net

folder = sys.argv[1]
model = ("net-0003.params", "net-symbol.json", "labels.csv", "mean.nd", "taglist.json", "infer_config.json")
files = {name: folder + "/" + name for name in model}
custom = {"synset.txt": folder + "/synset.txt"}
shared = {"batch_size": 2, "use_device": "GPU", "model_params": {"cropSize": 300}}
named = (
    "batch_size use_device image_width image_height model_prefix model_epoch file_model file_symbol file_synset "
    "file_mean file_taglist value_mean value_std custom_files custom_values"
).split()

def said(configs):
    config = net.NetConfig()
    config.parse({**shared, **configs})
    return {name: getattr(config, name) for name in named}

print(json.dumps([
    said({"model_files": files}),
    said({"model_files": files, "custom_files": custom, "custom_params": {"mean_value": "1,2,3", "x": 1}}),
    said({"tar_files": {}, "custom_values": {"std": 4}}),
    net.parse_infer_config(files), net.parse_infer_config({}),
    net.load_labels(files["labels.csv"]),
]))
"""


def test_mxnet_base(shims: str, tmp_path: Path) -> None:
    """Scripts read what they need from its attributes; what is not there is None."""
    (tmp_path / "labels.csv").write_text("0,cat\n")
    (tmp_path / "infer_config.json").write_text('{"mean_value": [104, 117, 123.5], "std_value": "58.4, 57.1, 57.4"}')
    alone, custom, nothing, *read = run(shims, MXNET, str(tmp_path))

    def at(name: str) -> str:
        return f"{tmp_path}/{name}"

    assert alone == {
        "batch_size": 2, "use_device": "GPU", "image_width": 300, "image_height": 300, "model_prefix": at("net"),
        "model_epoch": 3, "file_model": at("net-0003.params"), "file_symbol": at("net-symbol.json"),
        "file_synset": at("labels.csv"), "file_mean": at("mean.nd"), "file_taglist": at("taglist.json"),
        "value_mean": [104, 117, 123.5], "value_std": [58.4, 57.1, 57.4], "custom_files": {}, "custom_values": {},
    }  # fmt: skip
    assert {name: value for name, value in custom.items() if alone[name] != value} == {
        "file_synset": at("synset.txt"), "custom_files": {"synset.txt": at("synset.txt")}, "value_mean": [1, 2, 3],
        "custom_values": {"mean_value": "1,2,3", "x": 1},
    }  # fmt: skip
    files = [nothing[name] for name in nothing if name.startswith("file_")]
    assert (files, nothing["value_mean"], nothing["value_std"]) == ([None] * 5, None, [4])
    assert read == [[[104, 117, 123.5], [58.4, 57.1, 57.4]], [None, None], [["0", "cat"]]]


def test_mxnet_finds_a_file_without_an_epoch(shims: str, tmp_path: Path) -> None:
    """MXNet's load_checkpoint looks for prefix-epoch.params, and for nothing else."""
    folder = tmp_path / "net-1" / "models"
    folder.mkdir(parents=True)
    (folder / "weight.params").write_bytes(b"weights")
    looks = (
        "import json, sys\nfrom evals.mxnet_base.net import NetConfig\n"
        "config = NetConfig().parse({'model_files': {'weight.params': sys.argv[1]}})\n"
        "print(json.dumps(['%s-%04d.params' % (config.model_prefix, config.model_epoch), config.file_model]))\n"
    )
    named, given = run(shims, looks, str(folder / "weight.params"))
    assert Path(named).read_bytes() == Path(given).read_bytes() == b"weights"
