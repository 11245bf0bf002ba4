"""What models of public repositories and NVIDIA's test clients do: senders, cancellations, codes, generate."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import environments
from support.models import all_of
from support.rpc import address
from support.server import Server, serving, wait_until

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(HERE / "repository"), "--grpc-port", "0", ready=False) as started:
        started.wait_ready()
        yield started


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["streams", "cancelled", "codes", "bf16"])
def test_nvidias_client_asks_them(what: str, server: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(HERE / "clients" / "repository.py"), what]
    command += [server.url.partition("://")[2], address(server)]
    pipe, mark = subprocess.PIPE, len(server.lines)
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as client:
        for _ in range(2 if what == "cancelled" else 0):
            # The client cancels when it hears that the model has what it asked.
            server.wait_log("waiting", 60, after=mark)
            mark = len(server.lines)
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
            server.wait_log("cancelled", after=mark)
        _, errors = client.communicate(timeout=120)
    assert client.returncode == 0, errors


def generate(server: Server, model: str, body: object, ending: str = "generate") -> tuple[int, str]:
    answer = server.client.post(f"/v2/models/{model}/{ending}", json=body)
    return answer.status_code, answer.text


def test_decoupled_requests_are_open_at_the_same_time_and_share_calls(server: Server) -> None:
    def share_calls() -> bool:
        mark = len(server.lines)
        with ThreadPoolExecutor(6) as crowd:
            bodies = [{"HOW": "thread", "N": number} for number in range(6)]
            answers = list(crowd.map(lambda body: generate(server, "sender", body), bodies))
        for number, (status, text) in enumerate(answers):
            assert (status, json.loads(text)["OUT"]) == (200, number)

        def calls() -> list[int]:
            return [int(line.rpartition(" ")[2]) for line in server.lines[mark:] if "a call with" in line]

        wait_until(lambda: sum(calls()) >= 6)
        return max(calls()) > 1

    # A call waits for further requests for 50 ms: on a busy machine these may come later.
    wait_until(share_calls)


@pytest.mark.parametrize(("model", "body"), [("sender", {"HOW": "wait", "N": 0}), ("various", {"WORD": "wait"})])
def test_a_model_learns_that_its_client_disconnected(model: str, body: object, server: Server) -> None:
    mark = len(server.lines)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        content = json.dumps(body).encode()
        head = f"POST /v2/models/{model}/generate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        server.wait_log("waiting", after=mark)
    server.wait_log("cancelled", after=mark)


def test_responses_go_on_behind_an_error(server: Server) -> None:
    status, text = generate(server, "sender", {"HOW": "error", "N": 0}, "generate_stream")
    events = [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]
    assert (status, [event.get("OUT", event.get("error")) for event in events]) == (200, [1, "in between", 2])


def test_an_exception_behind_the_last_response_is_logged(server: Server) -> None:
    mark = len(server.lines)
    assert generate(server, "sender", {"HOW": "late", "N": 0})[0] == 200
    server.wait_log("raised behind the last response", after=mark)


def test_what_is_sent_or_returned_at_the_wrong_time(server: Server) -> None:
    mark = len(server.lines)
    assert generate(server, "sender", {"HOW": "closed", "N": 0})[0] == 200
    server.wait_log("Unable to send response. Response sender has been closed.", after=mark)
    assert generate(server, "sender", {"HOW": "returns", "N": 0})[0] == 500
    server.wait_log("its execute must return None", after=mark)


def test_a_coroutine_may_leave_tasks_behind(server: Server) -> None:
    def done() -> int:
        status, text = generate(server, "awaited", {})
        assert status == 200
        return int(json.loads(text)["DONE"])

    wait_until(lambda: done() > 2)


def test_generate_takes_values_and_gives_values(server: Server) -> None:
    body = {"HOW": "loop", "N": 1, "id": "seven"}
    status, text = generate(server, "sender", body)
    expected = {"model_name": "sender", "model_version": "1", "id": "seven", "OUT": 0, "TEXT": "number 0"}
    assert (status, json.loads(text)) == (200, expected)
    status, text = generate(server, "sender", {**body, "N": 2})
    assert (status, "exactly 1 response" in text) == (400, True)
    status, text = generate(server, "sender", {**body, "N": 2}, "generate_stream")
    assert [json.loads(line[6:])["OUT"] for line in text.split("\n\n") if line] == [0, 1]
    status, text = generate(server, "various", {"N": [1], "temperature": 1, "parameters": {"top": "k"}})
    assert json.loads(text)["TEXT"] == '1 inputs, {"temperature": 1, "top": "k"}'
    answer = server.client.post("/v2/models/various/versions/1/generate_stream", json={"WORD": "x"})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert json.loads(answer.text.removeprefix("data: "))["TEXT"] == "1 inputs, {}"


def test_elements_that_are_no_texts_are_sent_as_their_texts(server: Server) -> None:
    status, text = generate(server, "various", {"WORD": "object"})
    assert (status, json.loads(text)["TEXT"]) == (200, "{'a': 5}")


@pytest.mark.parametrize(
    ("model", "body", "said"),
    [
        ("sender", {"N": "a", "HOW": "loop"}, "which holds whole numbers"),
        ("sender", {"N": [1, 2], "HOW": "loop"}, "The schema can not convert input 'N'"),
        ("sender", {"N": 1}, "the input 'HOW' is missing"),
        ("various", {"z": {}}, "parameter 'z' has invalid type"),
        ("various", [1], "send a JSON object"),
        ("various", {"WORD": "code", "N": 6}, "code 6"),
    ],
)
def test_generate_says_what_is_wrong(model: str, body: object, said: str, server: Server) -> None:
    status, text = generate(server, model, body)
    assert (status, said in json.loads(text)["error"]) == (400, True)


def test_no_inputs_where_all_are_optional(server: Server) -> None:
    for model, name in (("various", "TEXT"), ("awaited", "DONE")):
        answer = server.client.post(f"/v2/models/{model}/infer", json={"inputs": []})
        assert (answer.status_code, answer.json()["outputs"][0]["name"]) == (200, name)
    refused = server.client.post("/v2/models/sender/infer", json={"inputs": []})
    assert (refused.status_code, refused.json()["error"]) == (400, "the request has no inputs")


WORDS = {
    "tensor without a name": "TritonModelException: Tensor name cannot be an empty string.",
    "tensor of a list": "TypeError: __init__(): incompatible constructor arguments. ",
    "complex tensor": "TritonModelException: NumPy dtype is not supported.",
    "no capsule": "TritonModelException: Provided tensor is not supported. Tensor must be a DLPack capsule",
    "capsule": "",
    "capsule of text": "TritonModelException: DLPack does not have support for string tensors.",
    "columns": "TritonModelException: DLPack tensor is not contiguous.",
    "response with None": "TritonModelException: Output tensor for inference response should not be empty.",
    "response with a text": "TypeError: __init__(): incompatible constructor arguments. ",
    "parameter list": "TritonModelException: Expect parameters values to have type bool/int/str, found type",
    "parameter key": "TritonModelException: Expect parameters keys to have type str, found type <class 'int'>",
    "request with None": "TritonModelException: Input tensor for request with id '' and model name 'm' should not be",
    "request without a name": "TypeError: __init__(): incompatible constructor arguments. ",
    "request with an empty output": "TritonModelException: Requested output name for request with id ''",
    "correlation": "TritonModelException: Correlation ID must be integer or string",
    "code": "TypeError: __init__(): incompatible constructor arguments. ",
}


def test_wrong_arguments_are_refused_with_tritons_sentences(server: Server) -> None:
    """The model imports its words by `from . import`, too."""
    status, text = generate(server, "various", {"WORD": "words"})
    said = json.loads(json.loads(text)["TEXT"])
    assert status == 200
    assert said.keys() == WORDS.keys()
    for name, sentence in WORDS.items():
        assert said[name].startswith(sentence), name
        assert bool(said[name]) == bool(sentence), said[name]
