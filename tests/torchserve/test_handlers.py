"""What a handler of TorchServe gets and what its clients get, as measured on TorchServe 0.12.0."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.models import all_of
from support.server import PACKAGES, Server, panglot, serving
from support.torchserve import archive

ECHO = "/predictions/echo"
JSON, TEXT = "application/json", "text/plain; charset=utf-8"


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = archive(PACKAGES / "torchserve_echo", tmp_path_factory.mktemp("store") / "echo.mar", "handler.py", "1.0")
    with serving(made) as server:
        yield server


@pytest.fixture(scope="module")
def batch() -> Iterator[Server]:
    # A batch is sent when it is full. On a busy machine, requests at once may be further apart than it would wait else.
    with serving("torchserve_batch", "--max-wait-ms", "3000") as server:
        yield server


def act(server: Server, name: str) -> httpx.Response:
    return server.client.post(ECHO, json={"act": name})


def failure(status: int, message: str, kind: str = "InternalServerException") -> tuple[int, Any]:
    return status, {"code": status, "type": kind, "message": message}


def seen(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


# What a handler gets


@pytest.mark.document("torchserve.10")
@pytest.mark.parametrize(
    ("kind", "content", "row"),
    [
        (JSON, b'{"a": 1}', {"body": ["dict", {"a": 1}]}),
        ("application/json; charset=utf-8", b"[1]", {"body": ["list", [1]]}),
        (JSON, b"{bad", {"body": ["bytearray", "{bad"]}),
        ("Application/JSON", b"[1]", {"body": ["bytearray", "[1]"]}),
        ("text/plain", b"hi", {"body": ["str", "hi"]}),
        ("", b"raw", {"body": ["bytearray", "raw"]}),
        ("application/x-www-form-urlencoded", b"a=1&b=2", {"a": ["bytearray", "1"], "b": ["bytearray", "2"]}),
        ("application/x-www-form-urlencoded", b'{"a": 1}', {}),
    ],
)
def test_the_dict_of_a_body(echo: Server, kind: str, content: bytes, row: dict[str, Any]) -> None:
    answer = echo.client.post(ECHO, content=content, headers={"content-type": kind} if kind else {})
    assert answer.json() == row


@pytest.mark.document("torchserve.11")
def test_the_fields_of_a_form_are_keys_and_files_too(echo: Server) -> None:
    answer = echo.client.post(ECHO, files={"data": ("x.bin", b"abc")}, data={"note": "hi"})
    assert answer.json() == {"data": ["bytearray", "abc"], "note": ["bytearray", "hi"]}


@pytest.mark.document("torchserve.48")
def test_of_a_name_that_comes_twice_the_last_counts_and_a_json_file_is_bytes(echo: Server) -> None:
    twice = [("data", ("x.bin", b"1")), ("data", ("x.json", b'{"a": 1}', "application/octet-stream"))]
    assert echo.client.post(ECHO, files=twice).json() == {"data": ["bytearray", '{"a": 1}']}


@pytest.mark.document("torchserve.12")
def test_a_query_reaches_the_handler_on_the_older_paths_alone(echo: Server) -> None:
    assert echo.client.post(ECHO + "?q=1", json={}).json() == {"body": ["dict", {}]}
    answer = echo.client.post("/invocations?model_name=echo&q=1", json={})
    assert answer.json() == {"model_name": ["bytearray", "echo"], "q": ["bytearray", "1"], "body": ["dict", {}]}


@pytest.mark.document("torchserve.08")
def test_the_headers_have_the_parts_the_rest_of_the_path_and_whether_to_explain(echo: Server) -> None:
    headers = echo.client.post(ECHO + "/1.0/a/b", json={"act": "headers"}).json()
    assert headers["body"] == {"content-type": JSON}
    assert (headers["explain"], headers["url_path"], headers["Content-Type"]) == ("False", "a/b", JSON)
    assert echo.client.post("/explanations/echo", json={"act": "headers"}).json()["explain"] == "True"


@pytest.mark.document("torchserve.03", "torchserve.07")
def test_the_context_tells_of_the_model(echo: Server) -> None:
    context = act(echo, "context").json()
    properties = context["properties"]
    assert properties["model_dir"] == context["cwd"]
    assert (properties["server_name"], properties["server_version"], properties["batch_size"]) == ("MMS", "0.12.0", 1)
    assert (context["name"], context["config"], context["type"], context["initialized"]) == ("echo", {}, JSON, 1)
    assert context["manifest"]["model"]["handler"] == "handler.py"


# What clients get


@pytest.mark.document("torchserve.13", "torchserve.14")
def test_answers_by_their_type(echo: Server) -> None:
    answer = act(echo, "bytes")
    assert (answer.content, answer.headers["content-type"]) == (b"\x00\xff", "application/octet-stream")
    assert (act(echo, "text").text, act(echo, "text").headers["content-type"]) == ("text", TEXT)
    assert act(echo, "x").text == '{\n  "body": [\n    "dict",\n    {\n      "act": "x"\n    }\n  ]\n}'
    answer = act(echo, "status")
    assert (answer.status_code, answer.headers["content-type"], answer.headers["x-a"]) == (299, "text/csv", "b")


@pytest.mark.document("torchserve.18")
def test_failures_have_the_codes_of_the_platform(echo: Server) -> None:
    assert seen(act(echo, "raise")) == failure(503, "Prediction failed")
    assert seen(act(echo, "teapot")) == failure(418, "bad thing")
    assert seen(act(echo, "cuda")) == failure(507, "Out of resources")
    assert seen(act(echo, "memory")) == failure(507, "Out of resources")
    assert seen(act(echo, "set")) == failure(503, "Unsupported model output data type.")
    assert seen(act(echo, "kill")) == failure(500, "Worker died.")


@pytest.mark.document("torchserve.19")
def test_what_is_not_there(echo: Server) -> None:
    get = echo.client.get
    assert seen(get("/predictions/nope")) == failure(404, "Model not found: nope", "ModelNotFoundException")
    missing = "Model version: 9.0 does not exist for model: echo"
    assert seen(get(ECHO + "/9.0")) == failure(404, missing, "ModelVersionNotFoundException")
    unknown = failure(
        404, "Requested resource is not found, please refer to API document.", "ResourceNotFoundException"
    )
    assert seen(get("/nope")) == seen(get("/predictions")) == unknown


@pytest.mark.document("torchserve.16")
def test_any_method_and_the_paths_of_old_and_of_kserve_reach_the_handler(echo: Server) -> None:
    assert echo.client.put(ECHO, json=1).json() == {"body": ["int", 1]}
    assert echo.client.get(ECHO).json() == {"body": ["bytearray", ""]}
    for path in ("/models/echo/invoke", "/echo/predict", "/v1/models/echo:predict", "/invocations"):
        assert echo.client.post(path, json=1).json() == {"body": ["int", 1]}, path


@pytest.mark.document("torchserve.15")
def test_parts_of_an_answer_are_sent_while_the_handler_runs(echo: Server) -> None:
    with echo.client.stream("POST", ECHO, json={"act": "stream"}) as answer:
        assert "".join(answer.iter_text()) == "part 0;part 1;part 2;end"


def test_what_a_handler_sends_behind_a_failed_part_is_in_no_other_answer(echo: Server) -> None:
    """A client that prefers to be told of the failure keeps its connection, on which the next answer follows."""
    told = echo.client.post(ECHO, json={"act": "fail and go on"}, headers={"prefer": "error-in-stream"})
    assert told.headers["preference-applied"] == "error-in-stream"
    assert told.text.startswith("data: part\n\n\n\nevent: error\n")
    assert echo.client.post(ECHO, json=1).json() == {"body": ["int", 1]}
    assert echo.client.post(ECHO, json=2).json() == {"body": ["int", 2]}


@pytest.mark.document("torchserve.09")
def test_measurements_of_the_handler_are_metrics(echo: Server) -> None:
    act(echo, "measure")
    text = echo.client.get("/metrics").text
    assert 'Seen{Kind="cat",ModelName="echo",Level="Model"} 2' in text
    assert 'Took_count{ModelName="echo",Level="Model"} 1' in text


@pytest.mark.document("torchserve.17")
def test_ping_and_the_description(echo: Server) -> None:
    assert seen(echo.client.get("/ping")) == (200, {"status": "Healthy"})
    assert echo.client.get("/api-description").json()["openapi"] == "3.0.1"


# Batches


def together(server: Server, *words: str, path: str = "/predictions/torchserve_batch") -> list[httpx.Response]:
    def ask(word: str) -> httpx.Response:
        # A client of its own for each would take longer to make than a batch waits for its requests.
        return server.client.post(path, content=word, headers={"content-type": "text/plain"}, timeout=60)

    with ThreadPoolExecutor(len(words)) as pool:
        return list(pool.map(ask, words))


@pytest.mark.document("torchserve.21")
def test_a_raise_in_a_batch_costs_its_own_request_alone(batch: Server) -> None:
    together(batch, "slow")
    answers = together(batch, "slow", "a", "raise", "b")
    assert [answer.status_code for answer in answers] == [200, 200, 503, 200]


@pytest.mark.document("torchserve.21")
def test_a_killed_worker_costs_the_one_request_that_kills_it(batch: Server) -> None:
    answers = together(batch, "slow", "a", "kill", "b")
    assert [answer.status_code for answer in answers] == [200, 200, 500, 200]
    assert httpx.get(batch.url + "/ping").status_code == 200


@pytest.mark.document("torchserve.04", "torchserve.20")
def test_requests_share_a_call_by_batch_size(batch: Server) -> None:
    answers = [answer.text for answer in together(batch, "a", "b", "c", "d")]
    assert sorted(answers) == ["a of 4", "b of 4", "c of 4", "d of 4"]


# Forms of packages


@pytest.mark.document("torchserve.01")
@pytest.mark.parametrize("ending", [".tar.gz", ""])
def test_every_form_of_an_archive_is_served(tmp_path: Path, ending: str) -> None:
    made = archive(
        PACKAGES / "torchserve_batch", tmp_path / f"m{ending}", "service:handle", "3.0", configFile="model-config.yaml"
    )
    with serving(made) as server:
        answer = server.client.post("/predictions/m/3.0", content="hi", headers={"content-type": "text/plain"})
        assert answer.text == "hi of 1"
        described = server.client.get("/models/m").json()[0]
        assert (described["modelVersion"], described["batchSize"], described["maxBatchDelay"]) == ("3.0", 4, 300)


TENSOR = {"name": "x", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}
ENVELOPES: dict[str, tuple[Any, Any]] = {
    "body": ([1, 2], [2, 4]),
    "json": ({"instances": [1, 2]}, {"predictions": [2, 4]}),
    "kserve": ({"instances": [1, 2]}, {"predictions": [2, 4]}),
    "kservev2": (
        {"id": "7", "inputs": [TENSOR]},
        {
            "id": "7",
            "model_name": "kservev2",
            "model_version": "1.0",
            "outputs": [{"name": "x", "datatype": "INT64", "data": [2, 4], "shape": [2]}],
        },
    ),
}


@pytest.mark.document("torchserve.26")
def test_each_envelope_takes_its_form_and_gives_it(tmp_path: Path) -> None:
    for envelope in ENVELOPES:
        folder = shutil.copytree(PACKAGES / "torchserve_doubling", tmp_path / envelope)
        (folder / "config.properties").write_text(f"service_envelope={envelope}\n")
    with serving(all_of(tmp_path)) as server:
        for envelope, (sent, expected) in ENVELOPES.items():
            answer = server.client.post(f"/predictions/{envelope}", json=sent)
            assert json.loads(answer.text) == expected, envelope


@pytest.mark.document("torchserve.29")
def test_a_batch_in_small_pieces() -> None:
    with serving("torchserve_micro", "--max-wait-ms", "3000") as server:
        path = "/predictions/torchserve_micro"
        texts = sorted(answer.text for answer in together(server, *"abcd", path=path))
        assert texts == [f"hello {word} of 2" for word in "abcd"]
        explained = server.client.post("/explanations/torchserve_micro", content="a", headers={"content-type": TEXT})
        assert explained.json() == {"explained": "a"}


@pytest.mark.document("torchserve.02", "torchserve.05")
def test_a_base_handler_loads_weights_into_the_models_class(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = tmp_path / "torchserve_torch"
    shutil.copytree(PACKAGES / "torchserve_torch", folder)
    weights = {"layer.weight": torch.tensor([[1.0, 1.0]]), "layer.bias": torch.tensor([0.5])}
    torch.save(weights, folder / "weights.pth")
    with serving(folder) as server:
        assert server.client.post("/predictions/adder/2.1", json=[1, 2]).json() == [3.5]


@pytest.mark.document("torchserve.06", "torchserve.24")
@pytest.mark.parametrize(
    ("package", "sentence", "fix"),
    [
        (
            "torchserve_two_classes",
            "handler.py:8: there is no function handle, and a handler needs exactly one class",
            "def handle",
        ),
        ("torchserve_no_handle", "handler.py:1: Nothing has no handle", "def handle(self, data, context)"),
        ("torchserve_sequences", "model-config.yaml:2: sequences", "take sequenceBatching away"),
    ],
)
def test_a_package_that_cannot_work_says_what_to_mend(package: str, sentence: str, fix: str) -> None:
    done = panglot("serve", str(PACKAGES / "broken" / package))
    assert done.returncode == 3
    assert sentence in done.stderr.replace("\n", " ")
    assert fix in done.stderr


@pytest.mark.document("torchserve.24")
def test_a_workflow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flow.war").write_bytes(b"PK")
    done = panglot("serve", str(tmp_path / "flow.war"))
    assert done.returncode == 3
    assert "workflows of TorchServe" in done.stderr
