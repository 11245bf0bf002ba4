"""Several models in one server, each with placements of its own on nodes: what one machine promises holds there too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.graph_package import graph
from support.models import all_of, write_model
from support.on_nodes import agents
from support.ray_cluster import RayCluster
from support.rpc import SERVICE, Rpc
from support.scripted import Scripted, scripted, simple
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import Gate
from support.videos import made, make

pytestmark = pytest.mark.timeout(400)
FRAMES = 3000
CONTROL = "of-whoever-runs-it"
STREAM = """
import os, time

def predict(request):
    try:
        for number in range(request["count"]):
            time.sleep(request.get("pause", 0))
            yield {"number": number}
    finally:
        print("the stream is over")
"""
ROW = """
import os

def preprocess(request): return {"n": request["n"], "bytes": b"x" * 100_000, "first": os.environ["TEST_RAY_NODE"]}
def predict(value): return [value["n"] + 1, len(value["bytes"]), value["first"], os.environ["TEST_RAY_NODE"]]
"""
GATED = """
import os, time

def predict(request):
    print("item", request["id"], "begins")
    while "gate" in request and not os.path.exists(request["gate"]):
        time.sleep(0.005)
    return request["id"]
"""
EACH_NODE_ONCE = "pools = {preprocess = 1, inference = 1}\n[ray]\nworker_resources = {cpu = 0.1, lane = 1}\n"
"""Every node has one lane."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models."""
    models = tmp_path_factory.mktemp("models")
    write_model(models / "stream", body=STREAM)
    write_model(models / "gated", body=GATED)
    row = write_model(models / "row", body=ROW)
    (row / "panglot.toml").write_text(EACH_NODE_ONCE)
    for name in ("tensors", "frames"):
        shutil.copytree(PACKAGES / name, models / name)
    videos = Path(shutil.copytree(PACKAGES / "megflow_video", models / "videos"))
    (videos / "panglot.toml").write_text('uri_root = "."')
    make(videos / "clip.mp4", FRAMES)
    graph(models / "graph", "graph.words", "file.txt")
    # As in an image of the platform, with a folder whose files requests may name.
    shutil.copytree(PACKAGES / "evals_rows", models / "evals" / "python" / "evals")
    (models / "evals" / "panglot.toml").write_text('uri_root = "pictures"')
    (models / "evals" / "pictures").mkdir()
    (models / "evals" / "pictures" / "a.txt").write_text("in the package")
    return models


@pytest.fixture(scope="module")
def other(cluster: RayCluster) -> Iterator[Scripted]:
    """A server elsewhere, with what addresses in requests lead to."""
    with cluster.entered(), scripted({"/a": simple(b"of another server")}) as running:
        yield running


@pytest.fixture(scope="module")
def server(cluster: RayCluster, folder: Path, other: Scripted) -> Iterator[Server]:
    flags = ("--worker-resources", "cpu=0.1", "--python", sys.executable, "--load-at-once", "4", "--grpc-port", "0")
    with ExitStack() as stack:
        stack.enter_context(cluster.entered())
        served = serving(all_of(folder), *cluster.flags, *flags, "--admin", "--url-allow", other.host,
                         env={"PANGLOT_ADMIN_TOKEN": CONTROL}, ready=False)  # fmt: skip
        yield stack.enter_context(served).wait_ready(240)


def post(server: Server, model: str, value: object, **headers: str) -> httpx.Response:
    return server.client.post(f"/models/{model}/predict", json=value, headers=headers)


def placements(server: Server, model: str) -> float:
    return server.metric("panglot_placements", model=model, state="used")


def test_every_model_has_placements_of_its_own(inside: RayCluster, server: Server) -> None:
    for model in ("stream", "gated", "tensors", "evals", "frames", "graph"):
        assert placements(server, model) == 1
    nodes = {worker["node"] for worker in server.client.get("/status.json").json()["workers"]}
    assert nodes == {inside.network.address(2), inside.network.address(3)}
    assert "lane=1" not in server.log, "nobody had to wait"


def test_a_row_goes_over_two_nodes(inside: RayCluster, server: Server) -> None:
    for number in range(10):
        answer = post(server, "row", {"n": number})
        assert answer.json()[:2] == [number + 1, 100_000]
        assert set(answer.json()[2:]) == {inside.node(2), inside.node(3)}
        stages = {part.partition(";")[0].strip() for part in answer.headers["server-timing"].split(",")}
        assert {"preprocess", "inference", "total"} <= stages


def test_streams(inside: RayCluster, server: Server) -> None:
    """As events and as lines, while they are made; a client that leaves ends them on the node."""
    over = "the stream is over"
    wanted = [{"number": number} for number in range(3)]
    events = post(server, "stream", {"count": 3}).text.split("\n\n")
    assert [json.loads(event.removeprefix("data: ")) for event in events if event] == wanted
    told = post(server, "stream", {"count": 3}, accept="application/x-ndjson").text.splitlines()
    assert [json.loads(line) for line in told] == wanted
    wait_until(lambda: server.log.count(over) == 2)
    asked = server.client.stream("POST", "/models/stream/predict", json={"count": 100_000, "pause": 0.01})
    with asked as answer:
        lines = answer.iter_lines()  # it has to be kept: the answer is closed with its iterator
        next(lines)
        assert server.log.count(over) == 2
    wait_until(lambda: server.log.count(over) == 3)


def test_whoever_leaves_or_waits_too_long_costs_nothing(inside: RayCluster, server: Server, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    mark = len(server.lines)
    late = post(server, "gated", {"id": 1, "gate": str(gate)}, **{"x-timeout-ms": "200"})
    assert late.status_code == 504
    server.wait_log("item 1 begins", after=mark)
    with pytest.raises(httpx.ReadTimeout):
        server.client.post("/models/gated/predict", json={"id": 2}, timeout=0.2)
    wait_until(lambda: server.metric("panglot_queue_length", model="gated") == 0)
    gate.open()
    assert post(server, "gated", {"id": 3}).json() == 3
    server.wait_log("item 3 begins", after=mark)
    assert "item 2 begins" not in server.log_after(mark)


def test_what_requests_name_reaches_the_script(server: Server, other: Scripted, inside: RayCluster) -> None:
    """The front fetches what an address leads to; files come with the package."""
    for uri, text in ((other.url("/a"), "of another server"), ("file://a.txt", "in the package")):
        answer = server.client.post("/models/evals/v1/eval", json={"data": {"uri": uri}})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["body"] == [text]
    assert other.seen == 1


def test_a_graph_finds_its_modules_and_files(inside: RayCluster, server: Server) -> None:
    """Its modules are named from the folder above it."""
    assert server.client.post("/models/graph/analyze/bytes", content=b"ab").content == bytes([9, 9])


def test_tensors_over_rest_and_grpc(inside: RayCluster, server: Server) -> None:
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1.5, 2.5]}]}
    answer = server.client.post("/v2/models/tensors/infer", json=body).json()
    assert answer["outputs"][0]["data"] == [1.5, 2.5]
    rpc = Rpc(server)
    (raw,) = rpc.call("ModelInfer", rpc.tensors("tensors", x=[1.5, 2.5])).raw_output_contents
    assert raw == bytes.fromhex("0000c03f00002040")
    call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
    requests = [rpc.tensors("tensors", x=[number]).SerializeToString() for number in range(20)]
    answers = [rpc.kind("ModelStreamInferResponse").FromString(part) for part in call(iter(requests), timeout=60)]
    assert len(answers) == 20
    assert not [part.error_message for part in answers if part.error_message]
    rpc.close()


def test_a_video_in_a_body_reaches_the_node(inside: RayCluster, server: Server) -> None:
    headers = {"content-type": "video/mp2t", "accept": "application/x-ndjson"}
    answer = server.client.post("/models/frames/analyze_video", content=made(30), headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    seen = [json.loads(line)["result"]["read"] for line in answer.text.splitlines()]
    assert seen == list(range(30))
    empty = server.client.post("/models/frames/analyze_video", content=b"", headers=headers)
    assert empty.status_code == 422
    assert post(server, "frames", 5).json() == [{"seen": 5}]


def test_a_stream_outlives_its_worker(inside: RayCluster, server: Server) -> None:
    """Its successor at the same placement goes on with the file that the stream shows."""

    def stream() -> dict[str, Any]:
        return server.client.get("/models/videos/list").json()[0]

    workers = server.client.get("/status.json").json()["workers"]
    (pid,) = (worker["pid"] for worker in workers if worker["model"] == "videos")
    assert server.client.post("/models/videos/start/clip.mp4").text == "start stream whose id is 0"
    wait_until(lambda: stream()["results"] > 10)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: stream()["restarts"] == 1, 60, lambda: server.log)
    wait_until(lambda: stream()["state"] == "finished", 60, lambda: server.log)
    assert stream()["analysed"] >= FRAMES - 10
    assert server.client.post("/models/videos/analyze_video", content=made(5), timeout=60).text.count("data: ") == 6


def test_models_come_and_go(inside: RayCluster, server: Server, folder: Path) -> None:
    """A model that is loaded asks for placements, and gives them back when it is unloaded."""
    write_model(folder / "late")
    before = set(agents(inside))
    change(server, "late", "load")
    assert post(server, "late", 7).json() == {"model": "late", "got": 7}
    assert placements(server, "late") == 1
    assert len(set(agents(inside)) - before) == 1
    write_model(folder / "late", says="other")
    change(server, "late", "load")
    assert post(server, "late", 7).json() == {"model": "other", "got": 7}
    change(server, "late", "unload")
    assert post(server, "late", 7).status_code == 404
    wait_until(lambda: set(agents(inside)) == before)
    assert post(server, "gated", {"id": 3}).json() == 3


def change(server: Server, name: str, what: str) -> None:
    headers = {"authorization": f"Bearer {CONTROL}"}
    answer = httpx.post(f"{server.url}/v2/repository/models/{name}/{what}", headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
