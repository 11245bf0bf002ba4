"""Models that call each other: ensembles, and scripts that call models themselves (BLS)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy
import pytest

from panglot.errors import StartError
from panglot.serving.planning import Planner
from support import environments, model_files
from support.models import all_of
from support.rpc import address
from support.server import Server, panglot, serving, wait_until

HERE = Path(__file__).parent
WORDS = ("one", "two", "three")
ADMIN = "an-admin-token-of-some-length-0123456789"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(HERE / "composed", folder, dirs_exist_ok=True)
    model_files.dynamic(folder / "network" / "1" / "model.onnx")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(all_of(folder), "--grpc-port", "0", ready=False) as started:
        started.wait_ready()
        yield started


def scores(text: str) -> Any:
    return model_files.expected([[text.count(letter) for letter in "abcd"]])[0]


def word(text: str) -> str:
    return WORDS[int(scores(text).argmax())]


def post(server: Server, model: str, inputs: dict[str, Any], **options: Any) -> Any:
    return server.client.post(f"/models/{model}/predict", json=inputs, **options)


def bls(server: Server, how: str, text: str = "abba") -> str:
    answer = post(server, "bls", {"HOW": [how], "TEXT": [text]})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["WORD"][0])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["ensembles", "streams", "aio", "decoupled", "aio_streams"])
def test_nvidias_client_asks_them(what: str, server: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(HERE / "clients" / "composed.py"), what]
    command += [server.url.partition("://")[2], address(server), json.dumps([word("abba"), word("cab")])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# Ensembles


def test_steps_run_one_after_the_other(server: Server) -> None:
    answer = post(server, "pipeline", {"SENTENCE": [["abba"], ["ddc"]]}).json()
    assert answer["ANSWER"] == [[word("abba")], [word("ddc")]]
    assert numpy.allclose(answer["scores"], [scores("abba"), scores("ddc")], atol=1e-5)
    about = server.client.get("/v2/models/pipeline").json()
    assert (about["platform"], [tensor["name"] for tensor in about["inputs"]]) == ("ensemble", ["SENTENCE"])


def test_one_output_feeds_several_steps(server: Server) -> None:
    numbers = [[1.0, 2.0, 3.0, 4.0]]
    expected = 2 * 10 + float(model_files.expected(numbers).sum())
    answer = post(server, "fan", {"IN": numbers}).json()
    assert (answer["double"], pytest.approx(expected, abs=1e-4)) == ([[2, 4, 6, 8]], answer["TOTAL"][0][0])
    answer = post(server, "fan", {"IN": numbers, "MORE": [[5.0, 6.0]]}).json()
    assert answer["TOTAL"][0][0] == pytest.approx(expected + 11, abs=1e-4)


def test_only_the_steps_run_that_are_needed(server: Server) -> None:
    def count(model: str) -> float:
        return server.metric("panglot_requests_total", model=model, route="another model", status="200")

    before = count("total"), count("twice")
    body = {"inputs": [{"name": "IN", "shape": [1, 4], "datatype": "FP32", "data": [1.0] * 4}]}
    answer = server.client.post("/v2/models/fan/infer", json={**body, "outputs": [{"name": "double"}]})
    assert [output["name"] for output in answer.json()["outputs"]] == ["double"]
    assert (count("total"), count("twice")) == (before[0], before[1] + 1)
    statistics = server.client.get("/v2/models/twice/stats").json()["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] >= 1


def test_an_output_that_a_step_leaves_out_is_left_out(server: Server) -> None:
    lacking = next(text for text in ("", "a", "b", "c", "d", "ab", "bc", "cd") if scores(text).max() <= 0)
    having = next(text for text in ("a", "b", "c", "d") if scores(text).max() > 0)
    assert "best" not in post(server, "pipeline", {"SENTENCE": [[lacking]]}).json()
    assert "best" in post(server, "pipeline", {"SENTENCE": [[having]]}).json()
    body = {"inputs": [{"name": "SENTENCE", "shape": [1, 1], "datatype": "BYTES", "data": [lacking]}]}
    answer = server.client.post("/v2/models/pipeline/infer", json={**body, "outputs": [{"name": "best"}]})
    assert "step 3 (words) gave no output 'BEST' ('best'), which the request needs" in answer.text


def test_an_output_that_an_ensemble_does_not_have_is_refused(server: Server) -> None:
    body = {"inputs": [{"name": "IN", "shape": [1, 4], "datatype": "FP32", "data": [1.0] * 4}]}
    answer = server.client.post("/v2/models/fan/infer", json={**body, "outputs": [{"name": "triple"}]})
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "there is no output 'triple'; there is TOTAL, double"},
    )


def test_an_error_names_its_step(server: Server) -> None:
    answer = post(server, "pipeline", {"SENTENCE": [["refuse"]]})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "in ensemble pipeline, step 1 (letters): no such text"
    mark = len(server.lines)
    answer = post(server, "pipeline", {"SENTENCE": [["raise"]]})
    assert (answer.status_code, "a secret" in answer.text) == (500, False)
    server.wait_log("a secret of the script", after=mark)
    wrong = post(server, "pipeline", {"SENTENCE": [["a", "b"]]})
    assert (wrong.status_code, "has the shape [1, 2]" in wrong.text) == (400, True)


def test_steps_of_many_requests_share_calls(server: Server) -> None:
    mark = len(server.lines)
    texts = ["abcd"[: number % 5] * (number % 3 + 1) for number in range(60)]
    with ThreadPoolExecutor(20) as crowd:
        answers = list(crowd.map(lambda text: post(server, "pipeline", {"SENTENCE": [[text]]}).json(), texts))
    assert [answer["ANSWER"] for answer in answers] == [[[word(text)]] for text in texts]

    def calls() -> list[int]:
        return [int(line.rpartition(" ")[2]) for line in server.lines[mark:] if "letters of" in line]

    wait_until(lambda: sum(calls()) >= 60)
    assert max(calls()) > 1


def test_a_deadline_is_that_of_the_whole_graph(server: Server) -> None:
    mark = len(server.lines)
    answer = post(server, "pipeline", {"SENTENCE": [["wait"]]}, headers={"X-Timeout-Ms": "500"})
    assert answer.status_code == 504
    server.wait_log("cancelled", after=mark)


@pytest.mark.parametrize(("model", "body"), [
    ("pipeline", {"SENTENCE": [["wait"]]}), ("bls", {"HOW": ["chain"], "TEXT": ["wait"]}),
])  # fmt: skip
def test_calls_die_with_the_request_that_they_were_made_for(model: str, body: object, server: Server) -> None:
    mark = len(server.lines)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        content = json.dumps(body).encode()
        head = f"POST /models/{model}/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
        connection.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + content)
        server.wait_log("waiting", after=mark)
    server.wait_log("cancelled", after=mark)


@pytest.mark.timeout(180)
def test_only_the_calls_of_a_dead_worker_are_repeated(server: Server) -> None:
    texts = ["abcd"[number % 4] * (number % 7 + 1) for number in range(120)]
    killed = threading.Event()

    def ask(number: int) -> Any:
        if number == 40:
            killed.set()
        how = post(server, "pipeline", {"SENTENCE": [[texts[number]]]}).json()
        return how["ANSWER"][0][0]

    with ThreadPoolExecutor(8) as crowd:
        answers = crowd.map(ask, range(len(texts)))
        killed.wait(60)
        # Of a composing model, and of the ensemble itself.
        for model in ("words", "pipeline"):
            os.kill(pid_of(server, model), signal.SIGKILL)
        assert list(answers) == [word(text) for text in texts]
    mark = len(server.lines)
    died = post(server, "pipeline", {"SENTENCE": [["die"]]})
    assert died.status_code == 500
    assert "in ensemble pipeline, step 1 (letters): the script's process died on this request" in died.text
    server.wait_log("letters", after=mark)


def pid_of(server: Server, model: str) -> int:
    """The process of the only worker of a model."""
    workers = server.client.get("/status.json").json()["workers"]
    (pid,) = [int(worker["pid"]) for worker in workers if worker["model"] == model]
    return pid


# Decoupled steps


def events(server: Server, model: str, number: int) -> list[dict[str, Any]]:
    with server.client.stream("POST", f"/v2/models/{model}/generate_stream", json={"N": number}) as answer:
        assert answer.status_code == 200, answer.read()
        return [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_follows_a_decoupled_step_runs_for_each_of_its_responses(count: int, server: Server) -> None:
    said = [(event["token"], event["said"]) for event in events(server, "speech", count)]
    assert said == [(f"token {at}", f"TOKEN {at} OF {count}") for at in range(count)]
    again = [event["AGAIN"] for event in events(server, "twice_told", count)]
    assert again == [f"TOKEN {at} OF {count} OF {count}" for at in range(count)]
    assert server.client.get("/v2/models/speech/config").json()["model_transaction_policy"] == {"decoupled": True}


def test_parts_are_for_clients_that_take_them(server: Server) -> None:
    assert server.client.post("/v2/models/speech/generate", json={"N": 1}).json()["said"] == "TOKEN 0 OF 1"
    several = server.client.post("/v2/models/speech/generate", json={"N": 2})
    assert (several.status_code, "exactly 1 response" in several.text) == (400, True)
    body = {"inputs": [{"name": "N", "shape": [1], "datatype": "INT32", "data": [2]}]}
    whole = server.client.post("/v2/models/speech/infer", json=body)
    assert (whole.status_code, "answers in parts" in whole.text) == (400, True)
    lines = post(server, "speech", {"N": [2]}, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert [json.loads(line)["said"] for line in lines] == [["TOKEN 0 OF 2"], ["TOKEN 1 OF 2"]]


def test_an_error_ends_the_stream_of_an_ensemble(server: Server) -> None:
    said: list[str] = []
    with (
        pytest.raises(httpx.RemoteProtocolError),
        server.client.stream("POST", "/v2/models/speech/generate_stream", json={"N": 9}) as answer,
    ):
        said += (json.loads(line[6:])["token"] for line in answer.iter_lines() if line.startswith("data: "))
    first = server.client.post("/v2/models/speech/generate", json={"N": 9})
    assert "in ensemble speech, step 1 (shout): seven is not said" in first.text


def test_a_stream_that_nobody_reads_ends_all_its_steps(server: Server) -> None:
    mark = len(server.lines)
    with server.client.stream("POST", "/v2/models/twice_told/generate_stream", json={"N": 2000}) as answer:
        next(answer.iter_lines())
    server.wait_log("counter cancelled", after=mark)


def test_responses_of_different_decoupled_steps_belong_to_no_common_one(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "speech" / "config.pbtxt"
    step = 'step { model_name: "counter" input_map { key: "N" value: "N" } output_map { key: "TOKEN" value: "other" } }'
    output = 'output { name: "other" data_type: TYPE_STRING dims: [ 1 ] }'
    file.write_text(f"{file.read_text().rstrip().removesuffix('}')}{step}\n}}\n{output}")
    with pytest.raises(StartError, match=r"the ensemble has outputs of step 3 \(counter\) and of step 2 \(counter\)"):
        Planner({"models": str(tmp_path)}, {}).server_plan([])


# Scripts that call models


@pytest.mark.parametrize("how", ["chain", "ensemble"])
def test_a_script_calls_models_one_after_the_other(how: str, server: Server) -> None:
    assert bls(server, how, "cab") == word("cab")


def test_threads_of_a_script_call_models(server: Server) -> None:
    assert bls(server, "threads", "cab") == ",".join([word("cab")] * 4)


def test_a_script_awaits_several_calls_at_once(server: Server) -> None:
    texts = ["a", "bb", "cab", "dad"]
    answer = post(server, "gatherer", {"TEXTS": texts}).json()
    assert answer == {"WORDS": [word(text) for text in texts], "TOKENS": [5]}


def test_many_requests_call_models_at_once(server: Server) -> None:
    texts = ["abcd"[number % 4] * (number % 5) for number in range(40)]
    with ThreadPoolExecutor(12) as crowd:
        assert list(crowd.map(lambda text: bls(server, "chain", text), texts)) == [word(text) for text in texts]


def test_errors_of_calls_are_responses(server: Server) -> None:
    assert bls(server, "error", "refuse") == "no such text 3"
    assert bls(server, "missing") == "Failed for execute the inference request. Model 'nowhere' is not ready. 2"
    assert bls(server, "wrong") == "there is no input 'OTHER'; there is TEXT"
    assert bls(server, "doubled") == "the input 'TEXT' is there twice 3|the input 'N' is there twice 3"
    assert "not answered in time" in bls(server, "timeout")
    assert bls(server, "ready") == "True False"
    assert "answers in parts" in bls(server, "whole")


def test_responses_of_a_decoupled_model_come_one_after_the_other(server: Server) -> None:
    assert bls(server, "stream", "3") == "token 0|token 1|token 2"
    assert bls(server, "stream", "0") == ""
    assert bls(server, "stream", "-1") == "not so many|token 0"
    mark = len(server.lines)
    assert bls(server, "early") == "token 0"
    server.wait_log("counter cancelled", after=mark)


def test_streams_that_a_script_gives_up_hold_up_no_others(server: Server) -> None:
    assert bls(server, "impatient") == "token 0"


def test_a_model_that_calls_others_while_the_server_stops_gets_an_error(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "letters", tmp_path / "letters")
    shutil.copytree(folder / "bls", tmp_path / "bls")
    script = tmp_path / "bls" / "1" / "model.py"
    text = "np.array([['a']], object)"
    script.write_text(
        f"{script.read_text()}\n    def finalize(self):\n        print('the end:', self.error({text}), flush=True)\n"
    )
    with serving(all_of(tmp_path)) as server:
        server.stop()
        assert "the end: the server is stopping" in server.log


def test_a_script_loads_and_unloads_models_where_the_server_allows_it(folder: Path, server: Server) -> None:
    refused = bls(server, "reload")
    assert "start it with --admin" in refused
    assert refused.endswith("|True")
    assert "come from the server's folder" in bls(server, "changed")
    with serving(all_of(folder), "--admin", ready=False, env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as allowed:
        allowed.wait_ready()
        allowed.client.headers["authorization"] = f"Bearer {ADMIN}"
        assert bls(allowed, "reload") == "False|True"
        assert bls(allowed, "chain", "cab") == word("cab")
        assert "Failed to load model 'nowhere': " in bls(allowed, "absent")
        # An ensemble that is loaded later is checked too.
        letters = "/v2/repository/models/letters"
        assert allowed.client.post(f"{letters}/unload").status_code == 200
        ensemble = allowed.client.post("/v2/repository/models/pipeline/load")
        assert (ensemble.status_code, "has no model 'letters'" in ensemble.text) == (400, True)
        assert allowed.client.post(f"{letters}/load").status_code == 200
        assert allowed.client.post("/v2/repository/models/speech/load").status_code == 200
        assert [event["token"] for event in events(allowed, "speech", 2)] == ["token 0", "token 1"]


@pytest.mark.parametrize("names", [["itself"], ["back", "itself"]])
def test_models_that_would_wait_for_ever_get_an_error(names: list[str], server: Server) -> None:
    """The first has one worker, which waits for the call that leads back to it."""
    assert post(server, "itself", {"NEXT": ["back"]}).json() == {"SAID": ["the end"]}
    answer = post(server, "itself", {"NEXT": names})
    assert (answer.status_code, "would wait for ever: it calls itself" in answer.text) == (503, True)
    assert post(server, "itself", {"NEXT": []}).json() == {"SAID": ["the end"]}


# Before anything is loaded


def replaced(folder: Path, tmp_path: Path, before: str, after: str) -> Planner:
    """A planner for the repository, with a text of the ensemble's file replaced by another."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "pipeline" / "config.pbtxt"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))
    return Planner({"models": str(tmp_path)}, {})


@pytest.mark.parametrize(
    ("before", "after", "said", "line"),
    [
        ('"letters"', '"leters"', "this server has no model 'leters'.*did you mean letters", 13),
        ("model_version: 1", "model_version: 4", r"step 2 \(network\): version 4 is not served; there is 1", 19),
        ('key: "x"', 'key: "z"', r"step 2 \(network\) has no input 'z'; there is x", 19),
        ('key: "y"', 'key: "z"', r"step 2 \(network\) has no output 'z'; there is y", 19),
        ('value: "counts"', 'value: "others"', "needs 'counts', which is no input and no output of a step", 19),
        ('key: "SCORES" value: "scores"', 'key: "SCORES" value: "counts"', r"must have the shape \[-1, 3\]", 25),
        ("TYPE_FP32 dims: [ 3 ]", "TYPE_FP64 dims: [ 3 ]", "the output 'scores' must be FP64, and is FP32", 0),
        ('key: "TEXT" value: "SENTENCE"', 'key: "TEXT" value: "scores"', "these steps wait for each other", 13),
        ('value: "best"', 'value: "scores"', "'scores' is the output of", 25),
        ('"words"', '"pipeline"', "no input 'SCORES'|leads back to", 25),
        ("step [", "steps [", "'steps' is no field of ensemble_scheduling", 11),
    ],
)
def test_what_cannot_work_ends_the_start(
    before: str, after: str, said: str, line: int, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(StartError, match=said) as raised:
        replaced(folder, tmp_path, before, after).server_plan([])
    assert raised.value.file == str(tmp_path / "pipeline" / "config.pbtxt")
    assert not line or abs((raised.value.line or 0) - line) <= 1


def test_an_ensemble_alone_says_what_is_missing(folder: Path) -> None:
    ended = panglot("serve", str(folder / "pipeline"), "--port", "0")
    assert (ended.returncode, "this server has no model 'letters'" in ended.stderr) == (3, True)


def test_with_partial_the_others_are_served(folder: Path, tmp_path: Path) -> None:
    planner = replaced(folder, tmp_path, '"letters"', '"leters"')
    planner = Planner({"models": str(tmp_path), "partial": True}, {})
    plan = planner.server_plan([])
    assert set(plan.failed) == {"pipeline"}
    assert "letters" in {model.name for model in plan.models}
