"""Ensembles whose steps come one after the other: the front calls them, and the ensemble's worker does what is left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from panglot.serving.planning import Planner
from panglot_worker.tensors.handing import ChainError, Handing
from panglot_worker.tensors.infer import REST, Infer, WantedOutput, Wishes
from panglot_worker.tensors.tensors import Tensor
from support.models import all_of
from support.server import Server, serving, wait_until

LARGE = Path(__file__).parent / "large"
NUMBERS = [7.0, 1.0, 2.0]
ADMIN = "an-admin-token-of-some-length-0123456789"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(LARGE), ready=False) as started:
        started.wait_ready()
        yield started


def body(**more: Any) -> dict[str, Any]:
    tensor = {"name": "IN", "datatype": "FP32", "shape": [len(NUMBERS)], "data": NUMBERS}
    return {"inputs": [tensor], **more}


def served(server: Server, model: str) -> int:
    """How many answers the workers of a model have given."""
    workers = server.client.get("/status.json").json()["workers"]
    return sum(int(worker["served"]) for worker in workers if worker["model"] == model)


def ask(server: Server, **more: Any) -> Any:
    return server.client.post("/v2/models/chain/infer", json=body(**more))


@pytest.mark.parametrize(
    ("wanted", "by_worker"),
    [([], 0), (["OUT"], 0), (["middle", "OUT"], 0), (["middle"], 1), (["nothing"], 1)],
)
def test_the_worker_of_an_ensemble_is_asked_for_what_is_out_of_the_ordinary(
    wanted: list[str], by_worker: int, server: Server
) -> None:
    before = served(server, "chain")
    more = {"outputs": [{"name": name} for name in wanted]} if wanted else {}
    answer = ask(server, id="mine", **more)
    if wanted == ["nothing"]:
        assert (answer.status_code, "there is no output 'nothing'" in answer.text) == (400, True)
    else:
        assert answer.status_code == 200, answer.text
        outputs = answer.json()["outputs"]
        assert [output["name"] for output in outputs] == (wanted or ["OUT", "middle"])
        data = {"OUT": [7.0, 112.0, 113.0], "middle": [7.0, 12.0, 13.0]}
        assert [output["data"] for output in outputs] == [data[output["name"]] for output in outputs]
        about = {name: answer.json()[name] for name in ("model_name", "model_version", "id")}
        assert about == {"model_name": "chain", "model_version": "1", "id": "mine"}
    assert served(server, "chain") - before == by_worker


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        ({"name": "OTHER"}, "there is no input 'OTHER'; there is IN"),
        ({"datatype": "FP64"}, "the input 'IN' is FP32, not FP64"),
        ({"shape": [3, 1]}, r"the input 'IN' has the shape [3, 1]"),
        ({"shape": [4]}, "input 'IN'"),
        ({"data": ["text"]}, "input 'IN'"),
    ],
)
def test_what_an_ensemble_does_not_take_is_said_in_its_own_words(
    tensor: dict[str, Any], said: str, server: Server
) -> None:
    request = body()
    request["inputs"][0].update(tensor)
    answer = server.client.post("/v2/models/chain/infer", json=request)
    assert answer.status_code == 400
    assert said in answer.text
    assert "step" not in answer.text


def test_the_time_of_all_steps_is_that_of_the_answer(server: Server) -> None:
    assert "inference" in ask(server).headers["server-timing"]
    before = server.metric("panglot_requests_total", model="first", route="another model", status="200")
    statistics = server.client.get("/v2/models/chain/stats").json()["model_stats"][0]
    count = statistics["inference_stats"]["success"]["count"]
    assert ask(server).status_code == 200
    statistics = server.client.get("/v2/models/chain/stats").json()["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] == count + 1
    assert statistics["inference_stats"]["compute_infer"]["ns"] > 0
    after = server.metric("panglot_requests_total", model="first", route="another model", status="200")
    assert after == before + 1


def test_several_fronts_walk_the_steps() -> None:
    with serving(all_of(LARGE), "--fronts", "2", ready=False) as fronts:
        fronts.wait_ready()
        with ThreadPoolExecutor(8) as crowd:
            answers = list(crowd.map(lambda _: ask(fronts), range(60)))
        assert {answer.status_code for answer in answers} == {200}
        assert all(answer.json()["outputs"][0]["data"] == [7.0, 112.0, 113.0] for answer in answers)


def test_a_step_that_is_loaded_anew_is_called_again(tmp_path: Path) -> None:
    """Its workers then write to another file, which those of the next step have not mapped."""
    shutil.copytree(LARGE, tmp_path, dirs_exist_ok=True)
    with serving(all_of(tmp_path), "--admin", ready=False, env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as started:
        started.wait_ready()
        started.client.headers["authorization"] = f"Bearer {ADMIN}"
        long = {"name": "IN", "datatype": "FP32", "shape": [20_000], "data": [7.0] + [1.0] * 19_999}

        def total() -> float:
            answer = started.client.post("/v2/models/chain/infer", json={"inputs": [long]})
            assert answer.status_code == 200, answer.text
            return float(sum(answer.json()["outputs"][0]["data"]))

        expected = 7.0 + 112.0 * 19_999
        assert [total() for _ in range(4)] == [expected] * 4
        for model in ("first", "second"):
            assert started.client.post(f"/v2/repository/models/{model}/unload").status_code == 200
            gone = started.client.post("/v2/models/chain/infer", json={"inputs": [long]})
            assert (gone.status_code >= 400, model in gone.text) == (True, True)
            assert started.client.post(f"/v2/repository/models/{model}/load").status_code == 200
            assert [total() for _ in range(4)] == [expected] * 4
        wait_until(lambda: started.metric("panglot_slots_in_use", model="first") == 0)


# What is decided before anything runs


STEP = 'step { model_name: "%s" input_map { key: "X" value: "%s" } output_map { key: "Y" value: "%s" } }'


@pytest.mark.parametrize(
    ("steps", "chained"),
    [
        ([("first", "IN", "middle"), ("second", "middle", "OUT")], ["first", "second"]),
        ([("second", "middle", "OUT"), ("first", "IN", "middle")], ["first", "second"]),
        ([("first", "IN", "middle"), ("second", "IN", "OUT")], []),
    ],
)
def test_steps_that_do_not_wait_for_each_other_are_no_chain(
    steps: list[tuple[str, str, str]], chained: list[str], tmp_path: Path
) -> None:
    shutil.copytree(LARGE, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "chain" / "config.pbtxt"
    head = file.read_text().partition("ensemble_scheduling")[0]
    file.write_text(f"{head}ensemble_scheduling {{ {' '.join(STEP % step for step in steps)} }}")
    plan = Planner({"models": str(tmp_path)}, {}).server_plan([])
    chain = next(model.package.chain for model in plan.models if model.name == "chain")
    assert [step.model for step in chain] == chained
    assert [json.loads(step.hop)["keeps"] for step in chain] == [["middle"], ["middle", "OUT"]][: len(chain)]


HOP = {"inputs": {"X": "a"}, "outputs": {"Y": "b"}, "keeps": ["a", "b"], "needed": {"b": "step 2"}, "answers": ["c"]}


def text(**more: Any) -> bytes:
    return json.dumps({**HOP, "takes": None, **more}).encode()


def test_tensors_of_every_kind_are_handed_on() -> None:
    handing = Handing()
    first = handing.hop(text(takes=[["a", "BYTES", [2]]], final=["c"]))
    given = Tensor("a", "BYTES", (2,), [b"one", b""])
    wishes = Wishes(REST, "whole", "1", "an id", (WantedOutput("c", True),), False, "gzip")
    begun = handing.first(first, Infer(wishes, {"a": given}, {"own": 1.5}))
    assert (begun.inputs["X"].data, begun.wishes.wanted, begun.wishes.id) == ([b"one", b""], (), "an id")
    body = handing.body(begun.wishes.carried, [Tensor("Y", "INT8", (3,), b"\1\2\3"), Tensor("Z", "INT8", (1,), b"\4")])
    last = handing.hop(text(inputs={"A": "a", "B": "b"}, outputs={"C": "c"}, keeps=["c"], needed={}, last=True))
    infer = handing.handed(last, memoryview(bytes(body)))
    assert infer.inputs["A"] == Tensor("A", "BYTES", (2,), [b"one", b""])
    assert (bytes(infer.inputs["B"].data), infer.inputs["B"].shape, infer.parameters) == (b"\1\2\3", (3,), {"own": 1.5})
    assert infer.wishes.carried.client == wishes
    assert [tensor.name for tensor in handing.answers(infer.wishes.carried, [Tensor("C", "INT8", (1,), b"\5")])] == [
        "c"
    ]
    with pytest.raises(ChainError, match=r"gave no output 'C' \('c'\), which the request needs"):
        handing.answers(handing.handed(last, memoryview(bytes(body))).wishes.carried, [])
    with pytest.raises(ChainError, match=r"gave no output 'Y' \('b'\), which step 2 needs"):
        handing.body(begun.wishes.carried, [])


def test_what_clients_choose_is_kept_up_to_a_length() -> None:
    """Else requests with long parameters would stay in memory, whoever sends them."""
    handing = Handing()
    first = handing.hop(text(takes=[["a", "BYTES", [1]]], final=["c"]))
    last = handing.hop(text(inputs={"A": "a"}, keeps=["c"], needed={}, last=True))
    given = Tensor("a", "BYTES", (1,), [b"one"])
    for number in range(3):
        wishes = Wishes(REST, "whole", "1", "", (), False, "")
        begun = handing.first(first, Infer(wishes, {"a": given}, {"own": str(number) * 1_000_000}))
        body = handing.body(begun.wishes.carried, [Tensor("Y", "INT8", (1,), b"\1"), Tensor("Z", "INT8", (1,), b"\4")])
        assert handing.handed(last, memoryview(bytes(body))).parameters["own"][:1] == str(number)
    kept = [*handing._texts.values(), *handing._known]
    assert sum(map(len, kept)) < 1_000_000
