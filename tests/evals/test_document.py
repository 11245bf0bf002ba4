"""The platform's document: its listings, put together to a script, run as they stand.

Only their placeholders lose their angle brackets, and one import a comma that no Python reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import documents
from support.evals import ask, data_uri, package
from support.server import Server, serving

RET = '"result": result'
IMAGE = ("build", "py", "python", "inference.py", "inference_pb2.py", "evals", "eval.py")
SEEN = """
import os

model, code, message, result, rets = {"from": "create_net"}, 0, "", {}, []


def shown(request):
    data = request["data"]
    entries = data if isinstance(data, list) else [data]
    pictures = [
        {"body": entry["body"].decode(), "file": open(entry["uri"]).read(), "attribute": entry["attribute"]}
        for entry in entries
    ]
    return {"group": isinstance(data, list), "pictures": pictures, "params": request["params"], "model": model}
"""


@pytest.fixture(scope="module")
def listings() -> list[str]:
    """The document's blocks, in order."""
    blocks = documents.text("evals").split("```")[1::2]
    return [re.sub(r"<(\w+)>", r"\1", block).strip("\n") for block in blocks]


def only(listings: list[str], *signs: str) -> str:
    """The one block with all of these in it."""
    (block,) = [block for block in listings if all(sign in block for sign in signs)]
    return block.rstrip(",")


def script(listings: list[str], infer: str, prepare: str) -> str:
    """The three functions as the document has them, the bodies of two of them filled in."""
    parts = [
        only(listings, "import create_net_handler"),
        only(listings, "import net_preprocess_handler"),
        only(listings, "import net_inference_handler"),
        SEEN,
        only(listings, "def create_net("),
        only(listings, "def net_preprocess(").replace("...", prepare),
        only(listings, "def net_inference(").replace("...", infer),
    ]
    return "\n\n\n".join(parts) + "\n"


@pytest.fixture(scope="module")
def server(listings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    ret = " ".join(only(listings, RET).split())
    infer = f"rets = [{ret} for result in map(shown, requests)]"
    prepare = 'request = dict(request, params=dict(request.get("params", {}), prepared=True))'
    toml = "[evals]\nbatch_size = 2\nnet_preprocess = true\n"
    folder = package(tmp_path_factory.mktemp("document"), script(listings, infer, prepare), panglot__toml=toml)
    with serving(folder) as running:
        yield running


def request(listing: str, **values: Any) -> Any:
    """A request as the document writes it, with values for its placeholders."""
    source = re.sub(r",\s*\.\.\.", "", listing)
    return eval(source, {}, values)


@pytest.mark.document("evals.17", "evals.18", "evals.19", "evals.20", "evals.21", "evals.24")
def test_the_request_with_one_picture(server: Server, listings: list[str]) -> None:
    single = only(listings, '"data": {', "image_path")
    values = {"image_path": data_uri(b"one"), "image_data": None, "image_attribute": {"a": 1}, "params": {"p": 2}}
    seen = ask(server, request(single, **values)).json()
    assert (seen["code"], seen["message"]) == (0, "")
    assert seen["result"] == {
        "group": False,
        "pictures": [{"body": "one", "file": "one", "attribute": {"a": 1}}],
        "params": {"p": 2, "prepared": True},
        "model": {"from": "create_net"},
    }


@pytest.mark.document("evals.22", "evals.23")
def test_the_request_with_several_pictures(server: Server, listings: list[str]) -> None:
    many = only(listings, '"data": [', "image_path")
    values = {"image_path": data_uri(b"one"), "image_data": None, "image_attribute": {}, "params": {}}
    value = request(many, **values)
    assert ask(server, value).json()["result"]["group"] is True
    value["data"] *= 2
    assert [entry["file"] for entry in ask(server, value).json()["result"]["pictures"]] == ["one", "one"]
    value["data"] *= 2
    assert ask(server, value).status_code == 400


def as_it_stands(listings: list[str]) -> str:
    """With nothing in the place of the dots; what the functions return is defined at the end."""
    return script(listings, "...", "...") + f"\n\nrets = [{only(listings, RET)}]\n"


@pytest.mark.document("evals.02", "evals.28", "evals.32")
def test_the_functions_as_they_stand(listings: list[str], tmp_path: Path) -> None:
    with serving(package(tmp_path, as_it_stands(listings))) as server:
        answer = ask(server, {"data": {"uri": data_uri(b"x")}})
        assert (answer.status_code, answer.json()) == (200, {"code": 0, "message": "", "result": {}})


@pytest.mark.document("evals.38")
def test_the_folder_of_an_image(listings: list[str], tmp_path: Path) -> None:
    tree = only(listings, "inference.so")
    assert all(
        name in tree for name in ("build", "py", "python", "inference.py", "inference_pb2.py", "evals", "eval.py")
    )
    package(tmp_path / "python" / "evals", as_it_stands(listings))
    for name in ("python/inference.py", "python/inference_pb2.py", "inference.so", "build/py/Makefile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# of the platform, for Python 2\nprint 'never run'\n")
    with serving(tmp_path) as server:
        assert ask(server, {"data": {"uri": data_uri(b"x")}}).status_code == 200


@pytest.mark.document("evals.31", "evals.35", "evals.36", "evals.37")
@pytest.mark.parametrize(("code", "header"), [(400, None), (521, None), (571, "1")])
def test_codes(tmp_path: Path, listings: list[str], code: int, header: str | None) -> None:
    """4xx and 5xx with their message; 57x says that the request may be sent again."""
    infer = f"rets, code, message = None, {code}, 'why'"
    with serving(package(tmp_path, script(listings, infer, "..."))) as server:
        answer = ask(server, {"data": {"uri": data_uri(b"x")}})
        assert (answer.status_code, answer.json()) == (code, {"error": "why"})
        assert answer.headers.get("retry-after") == header
