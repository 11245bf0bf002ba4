"""Packages in the manner of public ones, served whole: what they were written to see and to answer."""

from __future__ import annotations

import base64
import concurrent.futures
import io
import json
import os
from pathlib import Path

import httpx
import pytest
from PIL import Image

from support.server import panglot, serving

JSON = "application/json"


@pytest.mark.document("hfendpoint.12", "hfendpoint.13")
def test_a_text_classifier_takes_texts_lists_and_parameters() -> None:
    with serving("hfendpoint_sentiment") as server:
        ask = server.client.post
        assert ask("/", json={"inputs": "I love you"}).json() == [{"label": "POSITIVE", "score": 0.9}]
        both = ask("/", json={"inputs": ["love", "hate"], "parameters": {"top_k": 1}}).json()
        assert [entry[0]["label"] for entry in both] == ["POSITIVE", "NEGATIVE"]
        assert len(ask("/?top_k=2", json={"inputs": "hate"}).json()) == 2
        answer = ask("/", json={"inputs": "x", "parameters": {"depth": 1}})
        assert (answer.status_code, "unexpected keyword argument 'depth'" in answer.json()["error"]) == (400, True)
        api = server.client.get("/openapi.json").json()
        shown = api["paths"]["/"]["post"]["requestBody"]["content"][JSON]
        assert shown["example"] == {"inputs": "I love you"}


@pytest.mark.document("hfendpoint.40")
def test_the_handler_of_the_platforms_own_guide_reads_keys_beside_inputs() -> None:
    with serving("hfendpoint_holidays") as server:
        ask = server.client.post
        assert ask("/", json={"inputs": "it is", "date": "2022-07-04"}).json() == [{"label": "happy", "score": 1}]
        assert ask("/", json={"inputs": "it is", "date": "2022-08-08"}).json() == [{"label": "sad", "score": 5}]
        assert ask("/", json={"inputs": 5}).json() == {"error": "inputs must be a text"}
        answer = ask("/", json={"inputs": "", "date": "today"})
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid isoformat string: 'today'"})


@pytest.mark.document("hfendpoint.04")
def test_a_handler_imported_from_a_sibling_answers_with_arrays() -> None:
    with serving("hfendpoint_sibling") as server:
        answer = server.client.post("/", json={"inputs": ["ab", "abc"]})
        assert answer.content == b'{"embeddings":[[2.0,0.1],[3.0,0.1]]}'


@pytest.mark.document("hfendpoint.05")
def test_the_older_form_is_served_with_a_warning() -> None:
    with serving("hfendpoint_legacy") as server:
        answer = server.client.post("/", json={"inputs": 1, "parameters": {}}).json()
        assert answer["module"] == "pipeline.PreTrainedPipeline"
        assert "pipeline.py" in answer["files"]
        assert answer["keys"] == ["inputs", "parameters"]
        server.wait_log("pipeline.py is the older form")


def picture() -> bytes:
    out = io.BytesIO()
    image = Image.new("RGB", (2, 1))
    image.putpixel((0, 0), (255, 0, 0))
    image.save(out, "PNG")
    return out.getvalue()


def test_a_picture_goes_in_and_out_as_bytes_or_in_base64() -> None:
    with serving("hfendpoint_picture") as server:
        raw = server.client.post("/", content=picture(), headers={"content-type": "image/png", "accept": "image/png"})
        in_json = server.client.post("/", json={"inputs": base64.b64encode(picture()).decode()})
        for content in (raw.content, base64.b64decode(in_json.json())):
            assert Image.open(io.BytesIO(content)).getpixel((1, 0)) == (255, 0, 0)
        shown = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert {"image/png", "image/*", JSON} <= set(shown)


BUSY = """
import os
import time


class EndpointHandler:
    def __init__(self, path):
        self.busy = []

    def __call__(self, data):
        if data["inputs"] == "variables":
            return {name: os.environ.get(name) for name in data["names"]}
        self.busy.append(data["inputs"])
        time.sleep(0.01)
        return [self.busy.pop(), len(self.busy)]
"""
VARIABLES = {
    "HF_MODEL_ID": "an/id",
    "HF_REVISION": "main",
    "HF_FRAMEWORK": "pytorch",
    "HF_TRUST_REMOTE_CODE": "1",
    "HF_TASK": "text-classification",
    "HF_HUB_TOKEN": "hf_x",
}


@pytest.mark.document("hfendpoint.49", "hfendpoint.50")
def test_calls_are_one_after_another_and_find_the_platforms_variables(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(BUSY)
    with serving(tmp_path, env=VARIABLES) as server, concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: server.client.post("/", json={"inputs": n}).json(), range(24)))
        assert answers == [[n, 0] for n in range(24)]
        found = server.client.post("/", json={"inputs": "variables", "names": list(VARIABLES)}).json()
        assert found == VARIABLES


@pytest.mark.document("hfendpoint.51")
def test_an_asynchronous_handler_is_awaited() -> None:
    with serving("hfendpoint_later") as server:
        assert server.client.post("/", json={"inputs": 5}).json() == {"later": 5}


@pytest.mark.document("hfendpoint.32")
@pytest.mark.rest("needs torch")
def test_a_torch_model_answers_lists_and_its_tensors_are_refused() -> None:
    pytest.importorskip("torch")
    with serving("hfendpoint_torch") as server:
        (scores,) = server.client.post("/", json={"inputs": [[1, 2, 3]]}).json()
        assert sum(scores) == pytest.approx(1)
        answer = server.client.post("/", json={"inputs": [[1, 2, 3]], "raw": True})
        assert (answer.status_code, answer.json()) == (400, {"error": "Type is not JSON serializable: Tensor"})
    with serving("hfendpoint_torch", env={"PANGLOT_STRICT_RESULTS": "false"}) as server:
        assert len(server.client.post("/", json={"inputs": [[1, 2, 3]], "raw": True}).json()[0]) == 2


@pytest.mark.document("hfendpoint.09")
@pytest.mark.skipif(os.getuid() != 0 or os.path.lexists("/repository"), reason="makes /repository, as root")
def test_a_fixed_path_leads_to_the_package_while_it_is_served() -> None:
    with serving("hfendpoint_repository", "--link-paths") as server:
        assert server.client.post("/", json={"inputs": 1}).json() == "dog"
    assert not os.path.lexists("/repository")


@pytest.mark.document("hfendpoint.45")
def test_vertex_ai_names_the_routes() -> None:
    env = {"AIP_MODE": "PREDICTION", "AIP_PREDICT_ROUTE": "/v1/endpoint:predict", "AIP_HEALTH_ROUTE": "/v1/alive"}
    with serving("hfendpoint_vertex", env=env) as server:
        answer = server.client.post("/v1/endpoint:predict", json={"instances": [1, 2]})
        assert answer.json() == {"predictions": [2, 4]}
        assert server.client.get("/v1/alive").text == "Ok"
        assert server.client.post("/", json={"instances": [1]}).status_code in (404, 405)


# Tools


def test_tensors_are_taken_as_bodies_of_the_platform() -> None:
    with serving("hfendpoint_sentiment") as server:
        ready = server.client.get("/v2/models/hfendpoint_sentiment").json()
        name = ready["inputs"][0]["name"]
        body = {"inputs": [{"name": name, "datatype": "BYTES", "shape": [1], "data": ['{"inputs": "love"}']}]}
        answer = server.client.post("/v2/models/hfendpoint_sentiment/infer", json=body)
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.json()["outputs"][0]["data"][0])[0]["label"] == "POSITIVE"


def test_run_and_check_make_requests_of_the_platform(tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text('"I love you"')
    done = panglot("run", "tests/packages/hfendpoint_sentiment", str(texts))
    assert (done.returncode, "POSITIVE" in done.stdout) == (0, True), done.stdout + done.stderr
    image = tmp_path / "image.png"
    image.write_bytes(picture())
    done = panglot("run", "tests/packages/hfendpoint_echo", str(image))
    assert (done.returncode, "PIL" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_dead_worker_is_told_in_the_platforms_form(tmp_path: Path) -> None:
    script = (
        "import os\nclass EndpointHandler:\n    def __init__(self, path): ...\n"
        "    def __call__(self, data):\n        return os._exit(1) if data['inputs'] else 'well'\n"
    )
    (tmp_path / "handler.py").write_text(script)
    with serving(tmp_path) as server:
        answer = server.client.post("/", json={"inputs": 1})
        assert (answer.status_code, list(answer.json())) == (500, ["error"])
        assert isinstance(answer.json()["error"], str)
        assert server.client.post("/", json={"inputs": 0}).json() == "well"


def test_a_token_is_asked_for_and_never_shown_to_the_handler(tmp_path: Path) -> None:
    with serving("hfendpoint_echo", env={"PANGLOT_TOKEN": "hf_mine"}) as server:
        refused = server.client.post("/", json={"inputs": 1})
        assert (refused.status_code, list(refused.json())) == (401, ["error"])
        answer: httpx.Response = server.client.post(
            "/", json={"inputs": 1}, headers={"authorization": "Bearer hf_mine"}
        )
        assert answer.json() == {"inputs": 1}
        assert server.client.get("/health").text == "Ok"
