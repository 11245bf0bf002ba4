"""What the platform says where a handler, a worker or a queue fails; envelopes and batches beside TorchServe itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import programs, torchserve
from support.models import all_of
from support.originals import Case, ask
from support.server import PACKAGES, Server, serving
from support.torchserve import TorchServe, really_archived

pytestmark = [pytest.mark.rest("TorchServe needs Java"), pytest.mark.timeout(400)]
TEXT = {"content-type": "text/plain"}
JSON = {"Content-Type": "application/json"}
RETURNS = """
import time


from ts.utils.util import PredictionException

ANSWERS = {"none": None, "dict": {"a": 1}, "tuple": ("a",), "few": [], "many": ["a", "b"], "text": "abc"}


def handle(data, context):
    if data is None:
        return None
    word = data[0].get("body")
    if word == "sleep":
        time.sleep(30)
    if word == "default code":
        raise PredictionException("my words")
    return ANSWERS.get(word, [[word, str(context.get_request_header(0, "x-word")), len(data)]])
"""
CONFIG = "responseTimeout: 2\nminWorkers: 1\nmaxWorkers: 1\n"


def returning(folder: Path, config: str) -> Path:
    folder.mkdir()
    (folder / "handler.py").write_text(RETURNS)
    (folder / "model-config.yaml").write_text(config)
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store, sources = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("sources")
    options = {"config_file": "model-config.yaml"}
    really_archived(returning(sources / "returns", CONFIG), store / "returns.mar", "handler.py", **options)
    really_archived(
        patient(PACKAGES / "torchserve_batch", sources / "batch"), store / "batch.mar", "service.py", **options
    )
    return store


def patient(package: Path, folder: Path) -> Path:
    """A copy whose batches wait until they are full: on a busy machine, requests at once may come a second apart."""
    shutil.copytree(package, folder)
    config = (package / "model-config.yaml").read_text()
    assert "maxBatchDelay: 300\n" in config
    (folder / "model-config.yaml").write_text(config.replace("maxBatchDelay: 300\n", "maxBatchDelay: 5000\n"))
    return folder


@pytest.fixture(scope="module")
def ours(store: Path) -> Iterator[Server]:
    with serving(all_of(store)) as server:
        yield server


@pytest.fixture(scope="module")
def original(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServe]:
    programs.need("java")
    models = {"returns": "returns.mar", "batch": "batch.mar"}
    with torchserve.original(store, tmp_path_factory.mktemp("torchserve"), models) as running:
        yield running


def said(word: str) -> Case:
    return Case("POST", "/predictions/returns", word, {"Content-Type": "text/plain", "X-Word": "w"})


@pytest.mark.document("torchserve.50", "torchserve.18", "torchserve.51", "torchserve.56")
@pytest.mark.parametrize("word", ["none", "dict", "tuple", "few", "many", "text", "default code", "fine", "sleep"])
def test_what_a_handler_may_not_return(ours: Server, original: TorchServe, word: str) -> None:
    mine, theirs = ask(ours.url, said(word)), ask(original.rest.url, said(word), token=original.token)
    if word == "fine":
        # The original finds a header only as the client wrote it, and httpx writes `X-Word`.
        assert (mine.body, theirs.body) == (["fine", "w", 1], ["fine", "None", 1])
    else:
        assert (mine.status, mine.body) == (theirs.status, theirs.body)
        assert (mine.status, mine.body["type"]) == ({"default code": 500, "sleep": 500}.get(word, 503),
                                                    "InternalServerException")  # fmt: skip


def together(url: str, words: list[str], token: str = "") -> list[int]:
    headers = {**TEXT, **({"Authorization": f"Bearer {token}"} if token else {})}

    def asking(word: str) -> int:
        return httpx.post(f"{url}/predictions/batch", content=word, headers=headers, timeout=60).status_code

    with ThreadPoolExecutor(len(words)) as pool:
        return list(pool.map(asking, words))


@pytest.mark.document("torchserve.21")
def test_one_raise_in_a_batch_of_four(ours: Server, original: TorchServe) -> None:
    assert together(original.rest.url, ["a", "b", "raise", "c"], original.token) == [503, 503, 503, 503]
    assert together(ours.url, ["a", "b", "raise", "c"]) == [200, 200, 503, 200]


@pytest.mark.document("torchserve.21")
def test_one_death_in_a_batch_of_four(ours: Server, original: TorchServe) -> None:
    assert together(ours.url, ["a", "b", "kill", "c"]) == [200, 200, 500, 200]
    # 507, or 500 where its front end notices the death before the worker's thread does.
    assert together(original.rest.url, ["a", "b", "kill", "c"], original.token) in ([507] * 4, [500] * 4)


@pytest.mark.document("torchserve.51")
def test_a_full_queue_and_a_body_that_is_too_large(tmp_path: Path) -> None:
    folder = returning(tmp_path / "busy", "jobQueueSize: 1\nminWorkers: 1\nresponseTimeout: 60\n")
    text = (folder / "handler.py").read_text().replace("time.sleep(30)", "time.sleep(2)")
    (folder / "handler.py").write_text(text)
    (folder / "config.properties").write_text("max_request_size=1000\n")
    with serving(folder) as server:

        def asking(_: int) -> httpx.Response:
            return httpx.post(f"{server.url}/predictions/busy", content="sleep", headers=TEXT, timeout=60)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(asking, range(6)))
        full = next(answer for answer in answers if answer.status_code == 503)
        assert full.json()["type"] == "ServiceUnavailableException"
        assert full.json()["message"].startswith('Model "busy" has no worker to serve inference request.')
        refused = server.client.post("/predictions/busy", content="x" * 2000, headers=TEXT)
        assert (refused.status_code, refused.json()["code"]) == (413, 413)
        assert server.client.post("/predictions/busy", content="x", headers=TEXT).status_code == 200


@pytest.mark.document("torchserve.55")
def test_requests_are_not_put_together_unless_somebody_says_so(tmp_path: Path) -> None:
    folder = returning(tmp_path / "alone", "minWorkers: 1\n")
    for flags, most in (((), 1), (("--max-batch", "4", "--max-wait-ms", "5000"), 4)):
        with serving(folder, *flags) as server, ThreadPoolExecutor(4) as pool:

            def asking(_: int, server: Server = server) -> Any:
                return httpx.post(f"{server.url}/predictions/alone", content="x", headers=TEXT, timeout=60)

            answers = list(pool.map(asking, range(4)))
            if most == 1:
                assert [answer.json()[2] for answer in answers] == [1] * 4
            else:
                # This handler looks at the first request alone: the batch is run again, one by one.
                assert [answer.status_code for answer in answers] == [200] * 4
                server.wait_log("mismatched")


# Envelopes


KSERVE = Case("POST", "/predictions/doubling", '{"instances": [1, 2]}', JSON)
TENSOR = '{"inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}], "id": "7"}'
WRAPPED = {
    "body": [Case("POST", "/predictions/doubling", "[1, 2]", JSON), Case("POST", "/predictions/doubling", "{}", JSON)],
    "json": [KSERVE, Case("POST", "/predictions/doubling", '{"instances": []}', JSON),
             Case("POST", "/predictions/doubling", "{}", JSON)],
    "kserve": [KSERVE, Case("POST", "/v1/models/doubling:predict", '{"instances": [3]}', JSON),
               Case("POST", "/v1/models/doubling:explain", '{"instances": [3]}', JSON),
               Case("POST", "/predictions/doubling", "{}", JSON)],
    "kservev2": [Case("POST", "/predictions/doubling", TENSOR, JSON),
                 Case("POST", "/predictions/doubling", "{}", JSON)],
}  # fmt: skip


@pytest.mark.document("torchserve.26")
@pytest.mark.parametrize("envelope", WRAPPED)
def test_envelopes_answer_alike(envelope: str, tmp_path: Path) -> None:
    programs.need("java")
    store, folder = tmp_path / "store", tmp_path / "torchserve"
    for path in (store, folder):
        path.mkdir()
    made = really_archived(PACKAGES / "torchserve_doubling", store / "doubling.mar", "doubling.py")
    models, lines = {"doubling": "doubling.mar"}, f"service_envelope={envelope}"
    with (
        torchserve.original(store, folder, models, properties=lines) as original,
        serving(made, "--service-envelope", envelope) as server,
    ):
        for case in WRAPPED[envelope]:
            mine, theirs = ask(server.url, case), ask(original.rest.url, case, token=original.token)
            assert (mine.status, mine.body) == (theirs.status, theirs.body), case


@pytest.mark.document("torchserve.26", "torchserve.54")
def test_a_package_behind_kserves_envelope() -> None:
    with serving("torchserve_prices") as server:
        for path in ("/v1/models/torchserve_prices:predict", "/predictions/torchserve_prices"):
            answer = server.client.post(path, json={"instances": [[1, 2], [3, 4]]})
            assert (answer.status_code, answer.json()) == (200, {"predictions": [3.0, 8.0]})
            assert server.client.post(path, json={"instances": [["a", 2]]}).status_code == 503
            assert server.client.post(path, json=[1]).status_code == 503
            assert server.client.post(path, content=b"").status_code == 503
