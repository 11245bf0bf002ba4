"""`uri` is the local path of the picture: for scripts that look at it, as long as they run, and no longer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot import dialects
from support.evals import IMPORTS, ask, data_uri, group, package, result, single
from support.scripted import Scripted, scripted, simple
from support.server import Server, serving

READS = f"""{IMPORTS}
import os, stat


def seen(entry):
    folder = os.stat(os.path.dirname(entry["uri"]))
    with open(entry["uri"], "rb") as file:
        content = file.read()
    return {{"uri": entry["uri"], "text": content.decode(), "same": content == entry["body"],
            "private": not stat.S_IMODE(folder.st_mode) & 0o077}}


@create_net_handler
def create_net(configs):
    return {{}}, 0, ""


@net_preprocess_handler
def net_preprocess(model, req):
    return dict(req, params=dict(req.get("params", {{}}), before=seen(req["data"]))), 0, ""


@net_inference_handler
def net_inference(model, reqs):
    rets = []
    for req in reqs:
        data, params = req["data"], req["params"]
        entries = [seen(entry) for entry in (data if isinstance(data, list) else [data])]
        if "note" in params:
            with open(params["note"], "w") as file:
                file.write(entries[0]["uri"])
        if params.get("do") == "raise":
            raise ValueError("broken: " + entries[0]["uri"])
        if params.get("do") == "die":
            os._exit(7)
        if params.get("do") == "tell":
            rets.append({{"code": 400, "message": "cv2 load %s failed" % entries[0]["uri"]}})
        else:
            rets.append({{"code": 0, "message": "", "result": dict(params, entries=entries)}})
    return rets, 0, ""
"""


@pytest.fixture(scope="module")
def remote() -> Iterator[Scripted]:
    with scripted({"/picture": simple(b"fetched")}) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, remote: Scripted) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("place")
    (place / "root" / "sub").mkdir(parents=True)
    (place / "root" / "sub" / "a.jpg").write_bytes(b"on disk")
    folder = package(place / "package", READS, panglot__toml="[evals]\nbatch_size = 3\n")
    flags = ("--uri-root", str(place / "root"), "--url-allow", f"127.0.0.1:{remote.port}")
    with serving(folder, *flags) as running:
        yield running


def entries(server: Server, value: Any) -> list[dict[str, Any]]:
    """What the script saw of each picture, now that the files are gone."""
    seen: list[dict[str, Any]] = result(server, value)["entries"]
    assert all(entry["same"] for entry in seen)
    assert not [entry["uri"] for entry in seen if os.path.exists(entry["uri"])]
    return seen


@pytest.mark.document("evals.18")
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        (data_uri(b"inside"), "inside"),
        ("file://sub/a.jpg", "on disk"),
        ("sub/a.jpg", "on disk"),
        ("http://127.0.0.1:{port}/picture", "fetched"),
    ],
)
def test_every_kind_of_uri(server: Server, remote: Scripted, uri: str, text: str) -> None:
    (entry,) = entries(server, {"data": {"uri": uri.format(port=remote.port)}})
    assert entry["text"] == text


@pytest.mark.document("evals.18")
def test_every_kind_of_body(server: Server) -> None:
    assert entries(server, {"data": {"body": "aGVsbG8="}})[0]["text"] == "hello"
    assert entries(server, single(b""))[0]["text"] == ""
    form = server.client.post("/v1/eval", files=[("file", b"one"), ("file", b"two")])
    assert [entry["text"] for entry in form.json()["result"]["entries"]] == ["one", "two"]
    raw = server.client.post("/v1/eval", content=b"raw", headers={"content-type": "application/octet-stream"})
    assert raw.json()["result"]["entries"][0]["text"] == "raw"


@pytest.mark.document("evals.18")
def test_pictures_have_files_of_their_own(server: Server) -> None:
    seen = entries(server, group(b"a", b"b", b"a"))
    assert [entry["text"] for entry in seen] == ["a", "b", "a"]
    assert len({entry["uri"] for entry in seen}) == 3
    rets = ask(server, [single(str(number).encode()) for number in range(7)], "/v1/batch").json()
    assert [ret["result"]["entries"][0]["text"] for ret in rets] == [str(number) for number in range(7)]


def test_files_are_private(server: Server) -> None:
    assert entries(server, single(b"x"))[0]["private"]


def test_files_go_with_a_request_that_fails(server: Server, tmp_path: Path) -> None:
    note = tmp_path / "note"
    answer = ask(server, single(b"x", {"do": "raise", "note": str(note)}))
    assert (answer.status_code, answer.json()) == (599, {"error": "broken: "})
    assert not os.path.exists(note.read_text())


def test_clients_do_not_learn_where_a_picture_lay(server: Server) -> None:
    answer = ask(server, single(b"x", {"do": "tell"}))
    assert (answer.status_code, answer.json()) == (400, {"error": "cv2 load  failed"})


def test_files_go_with_a_worker_that_dies(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with serving(package(tmp_path / "package", READS)) as server:
        assert ask(server, single(b"x", {"do": "die", "note": str(note)})).status_code == 500
        deadline = time.monotonic() + 20
        while os.path.exists(note.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not os.path.exists(note.read_text())


@pytest.mark.parametrize("pools", ["", "preprocess=1,inference=1,postprocess=1"])
def test_preprocess_sees_files_too(tmp_path: Path, pools: str) -> None:
    toml = "[evals]\nnet_preprocess = true\nbatch_size = 2\n"
    flags = ("--pools", pools) if pools else ()
    with serving(package(tmp_path, READS, panglot__toml=toml), *flags) as server:
        value = result(server, single(b"x"))
        assert (value["before"]["text"], value["before"]["same"]) == ("x", True)
        assert (value["entries"][0]["text"], value["entries"][0]["same"]) == ("x", True)
        assert not os.path.exists(value["before"]["uri"])
        assert not os.path.exists(value["entries"][0]["uri"])
        answer = ask(server, single(b"x", {"do": "tell"}))
        assert (answer.status_code, answer.json()) == (400, {"error": "cv2 load  failed"})


def script(expression: str, before: str = "") -> str:
    return f"""{IMPORTS}
import os
{before}

@create_net_handler
def create_net(configs):
    "What a docstring says of a uri or of uri files is no use of one."
    return {{}}, 0, ""

@net_inference_handler
def net_inference(model, reqs):
    return [{{"code": 0, "message": "", "result": {expression}}} for req in reqs], 0, ""
"""


MADE = {
    "len(req['data']['body'])": False,
    "req['data']['uri']": True,
    "req['data'].get('uri')": True,
    "sorted(str(value) for value in req['data'].values())": True,
    "dict(**req['data'])['attribute']": True,
}


@pytest.mark.parametrize("expression", MADE)
def test_files_are_made_for_those_that_may_look(tmp_path: Path, expression: str) -> None:
    options = dialects.discover(package(tmp_path, script(expression))).options
    assert options["uri_files"] is MADE[expression]


def test_a_helper_that_looks_counts(tmp_path: Path) -> None:
    folder = package(
        tmp_path, script("helper.read(req)", "import helper"), helper__py="def read(req): return req['data']['uri']"
    )
    assert dialects.discover(folder).options["uri_files"] is True


def test_no_files_where_nobody_looks(tmp_path: Path) -> None:
    """The folder of files is not even there; `uri` stays empty, as in the platform's own host."""
    looks = "[os.path.exists('../pictures'), [req['data'][name] for name in ('u' + 'ri',)]]"
    folder = package(tmp_path, script(looks))
    with serving(folder) as server:
        assert result(server, single()) == [False, [""]]
    (folder / "panglot.toml").write_text("[evals]\nuri_files = true\n")
    with serving(folder) as server:
        exists, (uri,) = result(server, single())
        assert exists
        assert uri
