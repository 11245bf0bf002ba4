"""How inputs become requests: the same for the tools and for the curl lines that are shown."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.inputs import make_request
from panglot.inputs.base import About, Base64, Form, Given, Json
from panglot.inputs.curl import curl
from support.server import ROOT, panglot, serving

SEVEN = ROOT / "examples" / "modelarts" / "model" / "seven.png"
DIALECTS = {"digits": "digit", "tiinfer": "digits", "modelarts": "digits", "evals": "result", "megflow/digits": "digit"}


def test_a_file_goes_where_the_dialect_wants_it() -> None:
    picture = Given("seven.png", file=SEVEN)
    encoded = base64.b64encode(SEVEN.read_bytes()).decode()
    content_type, body = make_request(About("tiinfer", "/inference"), picture).encoded()
    assert (content_type, json.loads(body)) == ("application/json", {"images": [encoded]})
    assert make_request(About("modelarts", "/"), picture).body == Form({"images": SEVEN})
    assert make_request(About("plain", "/predict"), picture).encoded() == ("image/png", SEVEN.read_bytes())
    form = {"example": {"kind": "form", "files": {"photo": "image/png"}, "fields": []}}
    assert make_request(About("plain", "/predict", api=form), picture).body == Form({"photo": SEVEN})
    assert make_request(About("plain", "/predict", field="mine"), picture).body == Form({"mine": SEVEN})
    assert make_request(About("nobody knows", "/x"), picture).encoded()[0] == "image/png"


def test_the_package_says_which_field(tmp_path: Path) -> None:
    picture = Given("seven.png", file=SEVEN)
    shown = {"example": {"kind": "json", "value": {"photo": "aGk=", "top": 3}}}
    assert make_request(About("tiinfer", "/inference", api=shown), picture).body == Json({"photo": Base64(SEVEN)})
    api = {"request_types": ["application/json"], "request_schema": {"properties": {"picture": {"type": "string"}}}}
    assert make_request(About("modelarts", "/", api=api), picture).body == Json({"picture": Base64(SEVEN)})
    with pytest.raises(StartError, match="--field"):
        make_request(About("modelarts", "/", api={"request_types": ["application/json"]}), picture)


@pytest.mark.parametrize("dialect", ["plain", "tiinfer", "modelarts"])
def test_json_is_sent_as_it_is(dialect: str) -> None:
    value = {"a": [1, None, "ü"]}
    content_type, body = make_request(About(dialect, "/"), Given("x", value=value)).encoded()
    assert (content_type, json.loads(body)) == ("application/json", value)


@pytest.mark.parametrize("value", [{"a": "it's 100 %"}, {"text": "\\n %s", "images": [Base64(SEVEN)]}])
def test_the_line_of_curl_sends_the_same_bytes(tmp_path: Path, value: object) -> None:
    """The line is run by a shell, with a curl that keeps what it was given."""
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/bash\nwhile [ "$1" ]; do case "$1" in -d) printf %s "$2";; @-) cat;; esac; shift; done\n')
    fake.chmod(0o755)
    line = curl("http://127.0.0.1:1", make_request(About("tiinfer", "/inference"), Given("x", value=value)))
    done = subprocess.run(
        ["bash", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == json.loads(Json(value).encoded()[1])


@pytest.mark.parametrize("name", DIALECTS)
def test_the_line_that_inspect_shows_works(name: str) -> None:
    folder = ROOT / "examples" / name
    with serving(folder) as server:
        line = json.loads(panglot("inspect", str(folder), "--port", str(server.port), "--json").stdout)["try"]
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=ROOT, check=True, timeout=30)
    assert json.loads(done.stdout)[DIALECTS[name]]
