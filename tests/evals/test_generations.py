"""Scripts of the two generations before: JSON text in and out, or an error text in the place of code and message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.evals import ask, group, package, single
from support.server import Server, panglot, serving

FIRST = """
import json
import os


def net_init(cfg):
    configs = json.loads(cfg)
    return {"error": configs["custom_values"].get("fail", ""), "configs": configs}


def item(model, req):
    path = req["data"][0]["uri"] if isinstance(req["data"], list) else req["data"]["uri"]
    body = open(path).read()
    if body in ("-1", "-2", "-3", "400", "415"):
        return {"code": int(body), "message": "" if body.startswith("-") else "script says", "result": "null"}
    if body == "file":
        with open(path + ".out", "wb") as file:
            file.write(b"streamed")
        return {"code": 0, "message": "", "result": "{}", "result_file": path + ".out"}
    seen = dict(req, body=body, keys=sorted(model["configs"]), size=os.path.getsize(path), reqs=model["count"])
    return {"code": 0, "message": "", "result": json.dumps(seen)}


def net_inference(model, args):
    args = json.loads(args)
    model["count"] = len(args["reqs"])
    if args["reqs"][0].get("params", {}).get("error"):
        return json.dumps({"error": "the whole call"})
    return json.dumps({"results": [item(model, req) for req in args["reqs"]], "headers": {}})
"""

SECOND = """
from evals.utils import *
from evals.utils.header import Header, wrap_header


@net_init_handler
def net_init(configs):
    return {"configs": configs}, configs["custom_params"].get("fail", "")


@net_inference_handler
@wrap_header
def net_inference(model, reqs):
    if reqs[0]["params"].get("raise"):
        raise ValueError("raised")
    if reqs[0]["params"].get("error"):
        return [], "the whole call"
    rets = [{"code": 0, "message": "", "result": {"body": open(req["data"]["uri"]).read()}} for req in reqs]
    return rets, ""
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    toml = "[evals]\nimage_width = 224\nbatch_size = 4\n"
    with serving(package(tmp_path_factory.mktemp("first"), FIRST, panglot__toml=toml)) as server:
        yield server


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(package(tmp_path_factory.mktemp("second"), SECOND)) as server:
        yield server


def test_the_first_generation(first: Server) -> None:
    seen = ask(first, single(b"hello", {"k": 1}, attribute={"a": 1})).json()["result"]
    assert (seen["body"], seen["size"], seen["params"]) == ("hello", 5, {"k": 1})
    assert seen["data"]["attribute"] == {"a": 1}
    assert {"tar_files", "custom_values", "image_width"} <= set(seen["keys"])
    assert not Path(seen["data"]["uri"]).exists()


def test_lists_and_groups_of_the_first_generation(first: Server) -> None:
    rets = ask(first, [single(b"a"), single(b"b")], "/v1/batch").json()
    assert [(ret["result"]["body"], ret["result"]["reqs"]) for ret in rets] == [("a", 2), ("b", 2)]
    assert ask(first, group(b"one", b"two")).json()["result"]["body"] == "one"


CODES = {
    b"-1": (400, "out of batch size"),
    b"-2": (500, "forward failed"),
    b"-3": (400, "invalid image"),
    b"400": (400, "script says"),
    b"415": (415, "script says"),
}


@pytest.mark.parametrize("body", CODES)
def test_codes_of_the_first_generation(first: Server, body: bytes) -> None:
    answer = ask(first, single(body))
    assert (answer.status_code, answer.json()["error"]) == CODES[body]


def test_a_result_in_a_file(first: Server) -> None:
    answer = ask(first, single(b"file"))
    assert (answer.headers["content-type"], answer.content) == ("application/octet-stream", b"streamed")


def test_the_error_of_a_whole_call(first: Server, second: Server) -> None:
    for server in (first, second):
        answer = ask(server, single(params={"error": True}))
        assert (answer.status_code, answer.json()) == (599, {"error": "the whole call"})


def test_the_second_generation(second: Server) -> None:
    assert ask(second, single(b"hello")).json()["result"] == {"body": "hello"}
    answer = ask(second, single(params={"raise": True}))
    assert (answer.status_code, answer.json()) == (599, {"error": "raised"})


@pytest.mark.parametrize("script", [FIRST, SECOND])
def test_a_start_that_fails(tmp_path: Path, script: str) -> None:
    folder = package(tmp_path, script, panglot__toml="[evals]\ncustom_params = { fail = 'no model' }\n")
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert "did not start: no model" in done.stderr
