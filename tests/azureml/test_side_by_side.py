"""The platform's own server and Panglot on the same packages and requests: status, headers that matter, and body.

A case that differs names the row of docs/dialects/azureml.md that says why.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import azureml, originals
from support.originals import Case
from support.server import Server, serving

pytestmark = pytest.mark.timeout(400)
JSON = {"Content-Type": "application/json"}
HEADERS = (
    "content-type", "x-ms-run-function-failed", "x-ms-server-version", "x-ms-client-request-id", "traceid", "x-a",
)  # fmt: skip
LONG = "a" * 101


def order(op: str, **more: Any) -> Case:
    return Case("POST", "/score", json.dumps({"op": op, **more}), JSON)


def sent(content: bytes | str, kind: str = "application/json", differs: str = "") -> Case:
    return Case("POST", "/score", content, {"Content-Type": kind} if kind else {}, differs=differs)


def with_header(name: str, value: str, differs: str = "") -> Case:
    return Case("POST", "/score", '{"op": "text"}', {**JSON, name: value}, differs=differs)


PLAIN = [
    Case("GET", "/"),
    order("x"),
    *(order(op) for op in ("text", "none", "set", "numpy", "letters", "keys", "raise", "weights")),
    *(order(op) for op in ("raw", "typed", "failed", "marked", "no content", "empty", "stream")),
    order("header", name="X-Odd"),
    order("header", name="Content-Type"),
    sent('{"op": "nan"}', differs="NaN in answers"),
    sent("plain text"),
    sent(""),
    sent("text", "text/plain"),
    sent("text", ""),
    sent(b"\xff\xfe"),
    sent("caf\u00e9"),
    sent('{"x": 1}', "application/x-www-form-urlencoded"),
    sent("no boundary", "multipart/form-data"),
    Case("POST", "/score", options={"files": {"a": b"b"}}),
    Case("GET", "/score?a=1&b=[1,2]&c=x&c=y"),
    Case("GET", "/score"),
    Case("GET", "/score?a=caf%C3%A9&b=&c=null"),
    Case("OPTIONS", "/score"),
    Case("PUT", "/score", "x"),
    Case("DELETE", "/score"),
    Case("POST", "/", "x"),
    Case("GET", "/nope"),
    Case("POST", "/nope", "x"),
    Case("GET", "/swagger.json?version=9"),
    with_header("x-request-id", LONG),
    with_header("x-ms-request-id", LONG),
    with_header("x-ms-client-request-id", LONG),
    with_header("x-ms-request-id", "r1"),
    with_header("x-ms-client-request-id", "c1"),
    with_header("TraceId", "t1"),
    with_header("azureml-model-deployment", "blue"),
]
SCHEMA = [
    sent('{"data": [[1, 2], [3, 4]], "k": 2}'),
    sent('{"data": [[1, 2]]}'),
    sent('{"data": [[1, 2]], "more": 1}', "application/problem+json; charset=utf-8"),
    sent('{"k": 1}'),
    sent('{"data": [[1, 2]], "k": -1}'),
    sent('{"data": [[1, 2, 3]]}', differs="Input that does not fit its sample"),
    sent('{"data": "text"}', differs="Input that does not fit its sample"),
    sent('{"data": [[1, 2]], "k": "text"}', differs="Input that does not fit its sample"),
    sent('{"data": [[1, 2]]}', "text/plain"),
    sent('{"data": [[1, 2]]}', ""),
    sent("[1]"),
    sent(""),
    sent("{"),
    sent('{"data": [[NaN, 2]]}', differs="Numbers in requests"),
    Case("GET", "/score?data=[[1,2]]"),
    Case("GET", "/score?k=1"),
    Case("OPTIONS", "/score"),
]
FRAMES = [
    sent('{"Inputs": {"data": [{"age": 3, "name": "x"}], "note": "n"}, "GlobalParameters": {"method": "m"}}'),
    sent('{"Inputs": {"data": [{"age": 3, "name": "x"}]}}'),
    sent('{"Inputs": {"data": [{"age": 3}]}}', differs="Input that does not fit its sample"),
]
UPLOADS = [("file[]", ("a.txt", b"first", "text/plain")), ("file[]", ("b.bin", b"second", "image/png"))]
RAW = [
    Case("GET", "/score?x=1&y=two"),
    Case("OPTIONS", "/score"),
    Case("POST", "/score", options={"files": UPLOADS, "data": {"note": "n"}}),
    sent("a=1&b=two", "application/x-www-form-urlencoded"),
    sent('{"a": 1}'),
    sent("{}"),
    sent("{"),
    sent(b"\x00\xff binary", "application/octet-stream"),
    sent("", "text/event-stream"),
    sent("", ""),
    Case("PUT", "/score", "x"),
]

Both = tuple[str, Server]


@contextlib.contextmanager
def both(package: str, *flags: str) -> Iterator[Both]:
    with azureml.theirs(package) as original, serving(package, *flags) as own:
        yield original.url, own


@pytest.fixture(scope="module")
def plain() -> Iterator[Both]:
    with both("azureml_plain") as served:
        yield served


@pytest.fixture(scope="module")
def schema() -> Iterator[Both]:
    with both("azureml_schema", "--python", azureml.python()) as served:
        yield served


@pytest.fixture(scope="module")
def frames() -> Iterator[Both]:
    with both("azureml_frames", "--python", azureml.python()) as served:
        yield served


@pytest.fixture(scope="module")
def raw() -> Iterator[Both]:
    """Of Panglot the request object that looks like Flask's."""
    with both("azureml_raw") as served:
        yield served


@pytest.fixture(scope="module")
def raw_in_flask() -> Iterator[Both]:
    with both("azureml_raw", "--python", azureml.python()) as served:
        yield served


def compare(served: Both, case: Case) -> None:
    theirs, own = served
    original, ours = (originals.ask(url, case, HEADERS) for url in (theirs, own.url))
    if case.differs:
        originals.differs(azureml.PLATFORM, case.differs)
        assert original != ours, "the difference is gone"
    else:
        assert ours == original


@pytest.mark.document("azureml.55")
@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_plain_scripts(plain: Both, case: Case) -> None:
    compare(plain, case)


@pytest.mark.document("azureml.55")
@pytest.mark.parametrize("case", SCHEMA, ids=str)
def test_decorated_scripts(schema: Both, case: Case) -> None:
    compare(schema, case)


@pytest.mark.document("azureml.55")
@pytest.mark.parametrize("case", FRAMES, ids=str)
def test_decorated_scripts_with_tables_and_nested_parameters(frames: Both, case: Case) -> None:
    compare(frames, case)


@pytest.mark.document("azureml.55")
@pytest.mark.parametrize("case", RAW, ids=str)
def test_raw_scripts_without_flask(raw: Both, case: Case) -> None:
    compare(raw, case)


@pytest.mark.document("azureml.55")
@pytest.mark.parametrize("case", RAW, ids=str)
def test_raw_scripts_with_flask(raw_in_flask: Both, case: Case) -> None:
    compare(raw_in_flask, case)


@pytest.mark.parametrize("version", ["", "?version=2", "?version=3", "?version=3.0", "?version=3.1"])
@pytest.mark.parametrize("package", ["plain", "schema"])
def test_swagger_documents_have_the_same_routes_and_schemas(
    request: pytest.FixtureRequest, package: str, version: str
) -> None:
    theirs, own = request.getfixturevalue(package)
    case = Case("GET", "/swagger.json" + version)
    original, ours = originals.ask(theirs, case, HEADERS), originals.ask(own.url, case, HEADERS)
    originals.differs(azureml.PLATFORM, "Descriptions in `/swagger.json`")
    assert (ours.status, ours.headers) == (original.status, original.headers)
    assert without_descriptions(ours.body) == without_descriptions(original.body)


@pytest.mark.document("azureml.52")
def test_variables_of_the_service_are_in_its_description(tmp_path: Path) -> None:
    """Those of the environment win over a config.json, which a variable may name."""
    config = tmp_path / "own.json"
    config.write_text('{"SERVICE_NAME": "of the file", "SERVICE_VERSION": "2.5", "AZUREML_LOG_LEVEL": "WARNING"}')
    env = {"AZUREML_CONFIG_FILE": str(config), "SERVICE_NAME": "boxes", "SERVICE_PATH_PREFIX": "api/v1/service/boxes"}
    shown = []
    with azureml.theirs("azureml_plain", **env) as theirs, serving("azureml_plain", env=env) as own:
        for url in (theirs.url, own.url):
            documents = [originals.ask(url, Case("GET", f"/swagger.json?version={number}")).body for number in (2, 3)]
            shown.append([(each["info"]["title"], each["info"]["version"], list(each["paths"])) for each in documents])
    assert shown[0] == shown[1]
    paths = [f"/api/v1/service/boxes/{name}" for name in ("", "score", "swagger.json")]
    assert shown[1] == [("boxes", "2.5", paths)] * 2


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_descriptions(part) for name, part in value.items() if name != "description"}
    return [without_descriptions(part) for part in value] if isinstance(value, list) else value


def test_a_request_that_the_script_sees(plain: Both) -> None:
    """Names of headers are in title case, those with underscores are dropped, several of one name are one."""
    headers = [("X-Odd", "1"), ("x-odd", "2"), ("under_score", "3"), ("Content-Type", "application/json")]
    seen = []
    for url in (plain[0], plain[1].url):
        with originals.httpx.Client() as client:
            names = client.post(url + "/score", content='{"op": "headers"}', headers=headers).json()
            odd = client.post(url + "/score", content='{"op": "header", "name": "X-Odd"}', headers=headers).json()
        seen.append((names, odd.replace(", ", ",")))
    assert seen[0] == seen[1]


def test_a_request_id_of_odd_letters_is_replaced(plain: Both) -> None:
    def heard(url: str, id: str) -> tuple[str, str]:
        answer = originals.httpx.post(url + "/score", content="x", headers={"x-request-id": id}, timeout=60)
        return answer.headers["x-request-id"], answer.headers["x-ms-request-id"]

    originals.differs(azureml.PLATFORM, "Request ids")
    theirs, own = plain[0], plain[1].url
    assert heard(own, "a.b_c:/+=@-1") == heard(theirs, "a.b_c:/+=@-1") == ("a.b_c:/+=@-1",) * 2
    assert heard(theirs, "a (b)")[0] == "a (b)"
    assert heard(own, "a (b)")[0] != "a (b)"


def test_a_browser_has_a_page_to_try_the_model(plain: Both) -> None:
    originals.differs(azureml.PLATFORM, "Playground")
    html = {"accept": "text/html"}
    theirs, own = (originals.httpx.get(url + "/", headers=html, timeout=60) for url in (plain[0], plain[1].url))
    assert theirs.text == "Healthy"
    assert (own.status_code, "<html" in own.text) == (200, True)


ITSELF = """
import importlib
azureml = "the word that makes it a package"
def init():
    pass
def run(raw_data):
    return importlib.import_module("entry_module").azureml
"""


def test_a_script_can_import_itself(tmp_path: Path) -> None:
    originals.differs(azureml.PLATFORM, "Module of the script")
    azureml.write(tmp_path, ITSELF)
    with azureml.theirs(tmp_path) as theirs, serving(tmp_path) as own:
        answers = [originals.ask(url, sent("x")) for url in (theirs.url, own.url)]
    assert [answer.status for answer in answers] == [500, 200]
    assert answers[1].body == "the word that makes it a package"


WRONG = {
    "no init": "def run(data):\n    return data\n# azureml\n",
    "no run": "def init():\n    pass\n# azureml\n",
    "kwargs": "def init():\n    pass\ndef run(**data):\n    return data\n",
    "nothing": "def init():\n    pass\ndef run():\n    return 1\n",
    "headers alone": "def init():\n    pass\ndef run(request_headers):\n    return 1\n",
    "init fails": "def init():\n    raise OSError('no model')\ndef run(data):\n    return 1\n",
    "both": """
from azureml_inference_server_http.api.aml_request import rawhttp
from inference_schema.schema_decorators import input_schema
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType
def init():
    pass
@rawhttp
@input_schema("data", StandardPythonParameterType(1))
def run(data):
    return data
""",
}


@pytest.mark.document("azureml.09")
@pytest.mark.parametrize("script", WRONG.values(), ids=WRONG)
def test_what_the_platform_refuses_to_start_ends_here_with_the_same_code(tmp_path: Path, script: str) -> None:
    from support.server import panglot

    azureml.write(tmp_path, script)
    command = [originals.program(azureml.python(), "azmlinfsrv"), "--entry_script", "score.py"]
    with originals.running([*command, "--port", originals.PORT], tmp_path, ready="") as original:
        assert original.ended() == 3
    done = panglot("serve", str(tmp_path), "--port", "0", "--python", azureml.python())
    assert done.returncode == 3, done.stderr
