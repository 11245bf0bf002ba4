"""What steps of a graph are: packages of any dialect, with the id of the client's request, counted as any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.models import all_of
from support.server import Server, serving

GRAPHS = Path(__file__).parent / "graphs"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(GRAPHS), "--grpc-port", "0", ready=False) as started:
        started.wait_ready()
        yield started


def infer(server: Server, model: str, wanted: tuple[str, ...] = (), name: str = "", **inputs: Any) -> Any:
    """The answer to a request with texts, or with numbers."""
    tensors = [
        {"name": key, "shape": [len(data)], "datatype": "BYTES" if isinstance(data[0], str) else "FP32", "data": data}
        for key, data in inputs.items()
    ]
    body = {"inputs": tensors, "outputs": [{"name": each} for each in wanted], **({"id": name} if name else {})}
    return server.client.post(f"/v2/models/{model}/infer", json=body)


def outputs(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return {tensor["name"]: tensor["data"][0] for tensor in answer.json()["outputs"]}


def asked(server: Server, model: str, given: str, output: str, text: str, name: str = "") -> Any:
    """What a model answers that another one calls."""
    return infer(server, "asks", name=name, MODEL=[model], INPUT=[given], OUTPUT=[output], TEXT=[text])


# Packages of other dialects


def test_a_step_may_be_a_package_of_any_dialect(server: Server) -> None:
    mixed = outputs(infer(server, "mixed", BODY=['{"inputs": "abc"}']))
    assert json.loads(mixed["COUNTED"]) == {"said": "ABC", "length": 3}
    numbers = outputs(infer(server, "numbers", X=[1.5, 2.0]))
    assert json.loads(numbers["SAID"]) == {"said": [3.0, 4.0]}


def test_the_error_of_such_a_step_names_it(server: Server) -> None:
    refused = infer(server, "mixed", BODY=['{"inputs": "refuse"}'])
    assert refused.status_code >= 400
    assert "step 1 (upper): " in refused.json()["error"]
    assert "no such text" in refused.json()["error"]


@pytest.mark.parametrize(("model", "text", "said"), [
    ("upper", '{"inputs": "abc"}', {"said": "ABC"}),
    ("count", '{"said": "abc"}', {"said": "abc", "length": 3}),
])  # fmt: skip
def test_a_script_calls_a_package_of_any_dialect(model: str, text: str, said: object, server: Server) -> None:
    assert json.loads(outputs(asked(server, model, "input", "output", text))["ANSWER"]) == said


def test_the_error_of_such_a_package_is_a_response(server: Server) -> None:
    refused = asked(server, "upper", "input", "output", '{"inputs": "refuse"}')
    assert refused.status_code >= 400
    assert "no such text" in refused.json()["error"]


def test_a_container_of_a_pipeline_may_be_a_package_of_any_dialect(server: Server) -> None:
    answer = server.client.post("/models/containers/invocations", json={"inputs": "abc"})
    assert (answer.status_code, answer.json()) == (200, {"said": "ABC", "length": 3})
    refused = server.client.post("/models/containers/invocations", json={"inputs": "refuse"})
    assert refused.status_code >= 400
    assert refused.headers["x-panglot-container"] == "1 upper"


# The id of the request


@pytest.mark.parametrize("wanted", [(), ("first", "second")])
def test_every_step_sees_the_id_of_the_clients_request(wanted: tuple[str, ...], server: Server) -> None:
    """Without names of outputs the front calls the steps; with some of them the ensemble's worker does."""
    answer = infer(server, "told", wanted, "mine", TEXT=["abc"])
    assert answer.json()["id"] == "mine"
    told = outputs(answer)
    assert (told["first"], told["second"]) == ("mine", "mine")
    told = outputs(infer(server, "told", wanted, TEXT=["abc"]))
    assert (told["first"], told["second"]) == ("", "")


def test_a_script_passes_the_id_on_to_the_model_that_it_calls(server: Server) -> None:
    assert outputs(asked(server, "tell", "TEXT", "ID", "abc", "mine"))["ANSWER"] == "mine"
    assert outputs(asked(server, "told", "TEXT", "second", "abc", "mine"))["ANSWER"] == "mine"


# Statistics


def counts(server: Server, model: str) -> dict[str, int]:
    (stats,) = server.client.get(f"/v2/models/{model}/stats").json()["model_stats"]
    parts = stats["inference_stats"]
    return {
        "inferences": stats["inference_count"],
        "executions": stats["execution_count"],
        **{part: about["count"] for part, about in parts.items() if not part.startswith("cache")},
        **{f"{part} ns": about["ns"] for part, about in parts.items() if not part.startswith("cache")},
    }


def gained(server: Server, model: str, before: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in counts(server, model).items()}


@pytest.mark.parametrize("wanted", [(), ("first", "second")])
def test_the_statistics_of_a_graph_count_each_of_its_calls(wanted: tuple[str, ...], server: Server) -> None:
    before = {model: counts(server, model) for model in ("told", "tell")}
    for number in range(5):
        outputs(infer(server, "told", wanted, TEXT=[f"text {number}"]))
    for model, calls in (("told", 5), ("tell", 10)):
        more = gained(server, model, before[model])
        for what in (
            "inferences",
            "executions",
            "success",
            "queue",
            "compute_input",
            "compute_infer",
            "compute_output",
        ):
            assert more[what] == calls, (model, what, more)
        assert more["fail"] == 0
        assert more["success ns"] > 0
        parts = ("queue", "compute_input", "compute_infer", "compute_output")
        assert sum(more[f"{part} ns"] for part in parts) <= more["success ns"]
    assert gained(server, "tell", before["tell"])["compute_infer ns"] > 0


def test_the_statistics_of_a_called_model_count_its_failures(server: Server) -> None:
    before = counts(server, "upper")
    for _ in range(3):
        assert infer(server, "mixed", BODY=['{"inputs": "refuse"}']).status_code >= 400
        assert asked(server, "upper", "input", "output", '{"inputs": "abc"}').status_code == 200
    more = gained(server, "upper", before)
    assert (more["success"], more["fail"]) == (3, 3)
