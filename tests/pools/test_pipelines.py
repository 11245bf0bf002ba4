"""Stages in pools of their own: what a client sees, and what a fault in one stage costs."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.after import unharmed
from support.raw import post
from support.server import Server, panglot, serving, wait_until
from support.traffic import Gate, answers, ask_all, occupy_stage, send
from support.wire import Wire

ROW = ("--pools", "preprocess=2,inference=1,postprocess=1")
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")
NORMAL, EXPECTED = {"id": 1, "brief": True}, {"id": 1, "twice": 2.0}
STAGES = ("preprocess", "inference", "postprocess")
LARGE = 150_528
"""Numbers of a 1x3x224x224 picture: 602 kB, which goes through shared memory."""


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Server]:
    with serving("row_script", *ROW, *QUICK) as server:
        wait_until(lambda: server.metric("panglot_workers", pool="preprocess", state="ready") == 2)
        yield server


def check(answer: dict[str, object], id: int, size: int) -> None:
    assert (answer["id"], answer["twice"], answer["size"]) == (id, 2.0 * id, size)


@pytest.mark.parametrize("size", [8, LARGE])
def test_each_stage_runs_in_a_process_of_its_own(size: int, pipeline: Server) -> None:
    for id, answer in enumerate(ask_all(pipeline, [{"id": id, "size": size} for id in range(40)])):
        body = answer.json()
        check(body, id, size)
        assert len(set(body["pids"])) == 3
        assert not body["loaded_here"], "load() belongs to the pool that infers"
    wait_until(lambda: pipeline.metric("panglot_slots_in_use") == 0)


def test_server_timing_and_metrics_tell_the_pools_apart(pipeline: Server) -> None:
    timing = pipeline.predict({"id": 3}).headers["server-timing"]
    names = [part.split(";")[0].strip() for part in timing.split(",")]
    assert names == ["queue", "decode", "preprocess", "inference", "postprocess", "encode", "total"] + [
        f"{stage}.{what}" for stage in STAGES for what in ("queue", "run")
    ]
    times = {name: float(value) for name, value in re.findall(r"([\w.]+);dur=([\d.]+)", timing)}
    assert times["queue"] == pytest.approx(sum(times[f"{stage}.queue"] for stage in STAGES), abs=0.01)
    assert sum(times[f"{stage}.run"] for stage in STAGES) <= times["total"]
    for stage in STAGES:
        assert pipeline.metric("panglot_pool_seconds_count", pool=stage) > 0
        assert pipeline.metric("panglot_batch_size_count", pool=stage) > 0
        assert pipeline.metric("panglot_workers", pool=stage, state="ready") >= 1


def test_the_page_names_the_pools(pipeline: Server) -> None:
    figures = pipeline.client.get("/status.json").text
    assert all(f'"{stage}"' in figures for stage in STAGES)


@pytest.mark.parametrize("size", [8, LARGE])
@pytest.mark.parametrize("stage", STAGES)
def test_one_raises_in_any_stage(stage: str, size: int, pipeline: Server) -> None:
    """For every stage: one 500, the others right, no process lost."""
    before = pipeline.metric("panglot_worker_restarts_total")
    items = [{"id": id, "size": size} for id in range(10, 18)]
    items[3][stage] = "raise"  # type: ignore[assignment]
    items[5][stage] = "refuse"  # type: ignore[assignment]
    got = ask_all(pipeline, items)
    assert [answer.status for answer in got] == [200, 200, 200, 500, 200, 422, 200, 200]
    for id, answer in enumerate(got, 10):
        if answer.status == 200:
            check(answer.json(), id, size)
    pipeline.wait_log(f"ValueError: item 13 is poison in {stage}")
    assert pipeline.metric("panglot_worker_restarts_total") == before
    wait_until(lambda: pipeline.metric("panglot_slots_in_use") == 0)


@pytest.mark.parametrize("size", [8, LARGE])
@pytest.mark.parametrize("stage", STAGES)
def test_one_crashes_in_any_stage(stage: str, size: int, pipeline: Server) -> None:
    """For every stage: the poison alone is answered 500."""
    with unharmed(pipeline, NORMAL, EXPECTED):
        items = [{"id": id, "size": size} for id in range(10, 16)]
        items[2][stage] = "crash"  # type: ignore[assignment]
        got = ask_all(pipeline, items)
        assert [answer.status for answer in got] == [200, 200, 500, 200, 200, 200]
        assert got[2].code == "worker_died"
        for id, answer in enumerate(got, 10):
            if answer.status == 200:
                check(answer.json(), id, size)
    wait_until(lambda: pipeline.metric("panglot_slots_in_use") == 0)


def test_what_a_script_changed_in_place_is_not_seen_by_the_second_run(pipeline: Server, tmp_path: Path) -> None:
    """A batch of large items dies after it was worked on in place: the mates run again, and are right."""
    with unharmed(pipeline, NORMAL, EXPECTED):
        gate = Gate(tmp_path / "gate")
        plug = occupy_stage(pipeline, gate, 99, "inference")
        items = [{"id": id, "size": LARGE} for id in range(20, 24)]
        items[1]["inference"] = "late crash"  # type: ignore[assignment]
        sent = [send(pipeline, item) for item in items]
        wait_until(lambda: pipeline.metric("panglot_queue_length", pool="inference") == 4)
        gate.open()
        got = answers(pipeline, [plug, *sent])[1:]
        assert [answer.status for answer in got] == [200, 500, 200, 200]
        for id, answer in enumerate(got, 20):
            if answer.status == 200:
                check(answer.json(), id, LARGE)


@pytest.mark.parametrize("stage", STAGES)
def test_a_worker_of_any_stage_is_killed(stage: str, pipeline: Server, tmp_path: Path) -> None:
    """For every stage: whoever it held runs again and is right."""
    with unharmed(pipeline, NORMAL, EXPECTED):
        gate = Gate(tmp_path / "gate")
        plug = occupy_stage(pipeline, gate, 7, stage)
        mates = [send(pipeline, {"id": id, "size": LARGE}) for id in range(30, 34)]
        holder = re.findall(rf"item 7 waits in {stage} as (\d+)", pipeline.log)[-1]
        gate.open()
        os.kill(int(holder), signal.SIGKILL)
        got = answers(pipeline, [plug, *mates])
        assert [answer.status for answer in got] == [200] * 5
        for id, answer in enumerate(got[1:], 30):
            check(answer.json(), id, LARGE)


@pytest.mark.parametrize("stage", STAGES)
def test_a_deadline_holds_in_any_stage(stage: str, pipeline: Server, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    plug = occupy_stage(pipeline, gate, 5, stage)
    others = [send(pipeline, {"id": 6 + n, "size": LARGE, stage: "wait", "gate": str(gate)}, 300) for n in range(3)]
    got = answers(pipeline, others)
    assert [answer.status for answer in got] == [504] * 3
    gate.open()
    assert answers(pipeline, [plug])[0].status == 200
    wait_until(lambda: pipeline.metric("panglot_requests_in_progress") == 0)
    wait_until(lambda: pipeline.metric("panglot_slots_in_use") == 0)


def test_a_client_that_leaves_is_forgotten_in_any_stage(pipeline: Server, tmp_path: Path) -> None:
    for number, stage in enumerate(STAGES):
        gate = Gate(tmp_path / stage)
        plug = occupy_stage(pipeline, gate, 40 + number, stage)
        with Wire(pipeline) as client:
            client.send(post(json.dumps({"id": 44, "size": LARGE, stage: "wait", "gate": str(gate)}).encode()))
            wait_until(lambda: pipeline.metric("panglot_requests_in_progress") == 2)
        wait_until(lambda: pipeline.metric("panglot_requests_in_progress") == 1)
        gate.open()
        assert answers(pipeline, [plug])[0].status == 200
    wait_until(lambda: pipeline.metric("panglot_slots_in_use") == 0)


@pytest.mark.parametrize("beside_a_job", [False, True])
def test_back_pressure_reaches_the_entrance(beside_a_job: bool, tmp_path: Path) -> None:
    """The last stage stands still: only so many begin, the rest wait at the entrance, and beyond that 503."""
    flags = (*ROW, "--queue", "20", "--max-batch", "2")
    with serving("row_script", *flags) as server:
        gate = Gate(tmp_path / "gate")
        if beside_a_job:
            mark = len(server.lines)
            job = {"id": 900, "preprocess": "wait", "gate": str(gate)}
            assert server.client.post("/predict", json=job, headers={"prefer": "respond-async"}).status_code == 202
            server.wait_log("item 900 waits", after=mark)
        plug = occupy_stage(server, gate, 1, "postprocess")
        sent = [send(server, {"id": id}) for id in range(100)]
        wait_until(lambda: server.metric("panglot_queue_length", pool="preprocess") == 20)
        wait_until(lambda: server.metric("panglot_dropped_total", reason="queue_full") > 0)
        waiting = server.metric("panglot_queue_length", pool="postprocess")
        between = server.metric("panglot_queue_length", pool="inference")
        assert waiting + between <= 30
        gate.open()
        got = answers(server, [plug, *sent])
        assert {answer.status for answer in got} == {200, 503}
        assert all(answer.headers.get("retry-after") for answer in got if answer.status == 503)
        assert sum(answer.status == 200 for answer in got) >= 21
        for id, answer in enumerate(got[1:]):
            if answer.status == 200:
                check(answer.json(), id, 8)


@pytest.mark.rest("seconds until a stage that hangs is killed")
def test_a_hung_stage_is_killed_and_the_others_go_on() -> None:
    flags = ("--run-timeout", "0.5", "--kill-grace", "0.2", "--timeout", "20", "--restart-delay", "0")
    with serving("row_script", *ROW, *flags) as server:
        for stage in STAGES:
            mates = [send(server, {"id": id}) for id in range(4)]
            assert answers(server, [send(server, {"id": 9, stage: "hang"})])[0].status == 504
            assert [answer.status for answer in answers(server, mates)] == [200] * 4


def test_reload_renews_every_pool(pipeline: Server) -> None:
    before = set(pipeline.predict({"id": 1}).json()["pids"])
    pipeline.process.send_signal(signal.SIGHUP)
    wait_until(lambda: not before & set(pipeline.predict({"id": 1}).json()["pids"]), 20)


def test_it_ends_when_told_with_work_in_every_stage() -> None:
    with serving("row_script", *ROW) as server:
        pause = {"seconds": 1.5}
        sent = [send(server, {"id": n, stage: "sleep", **pause}) for n, stage in enumerate(STAGES * 3)]
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 9)
        server.process.terminate()
        assert [answer.status for answer in answers(server, sent)] == [200] * 9
        assert server.process.wait(20) == 0


# Shared memory


def test_without_shared_memory_results_travel_by_the_socket() -> None:
    """The system refuses the memory file; one line says so, and all answers are right."""
    with serving("row_script", *ROW, largest_file=1 << 20) as server:
        server.wait_log("no shared memory for results between the pools .*: they travel by the workers' sockets")
        for id, answer in enumerate(ask_all(server, [{"id": id, "size": LARGE} for id in range(20)])):
            check(answer.json(), id, LARGE)


@pytest.mark.parametrize("size", ["0", "64KiB"])
def test_slots_that_are_too_small_or_none(size: str) -> None:
    with serving("row_script", *ROW, "--handoff-slot", size) as server:
        for id, answer in enumerate(ask_all(server, [{"id": id, "size": LARGE} for id in range(20)])):
            check(answer.json(), id, LARGE)


def test_more_results_than_slots(tmp_path: Path) -> None:
    """All slots are taken: the rest go by the socket."""
    flags = (*ROW, "--queue", "500", "--max-batch", "64")
    with serving("row_script", *flags) as server:
        gate = Gate(tmp_path / "gate")
        plug = occupy_stage(server, gate, 1, "inference")
        sent = [send(server, {"id": id, "size": 20_000}) for id in range(100)]
        wait_until(lambda: server.metric("panglot_queue_length", pool="inference") > 70)
        assert server.metric("panglot_slots_in_use") >= 64
        gate.open()
        for id, answer in enumerate(answers(server, [plug, *sent])[1:]):
            check(answer.json(), id, 20_000)
        wait_until(lambda: server.metric("panglot_slots_in_use") == 0)


# What can be asked for


def test_pools_in_panglot_toml(tmp_path: Path) -> None:
    (tmp_path / "predict.py").write_text(
        "import os\ndef preprocess(r): return os.getpid()\n"
        "def predict(r): return [r, os.getpid(), os.environ.get('PANGLOT_DEVICE')]\n"
    )
    (tmp_path / "panglot.toml").write_text('[pools]\npreprocess = 2\ninference = { workers = 1, device = "cpu" }\n')
    with serving(tmp_path) as server:
        first, second, device = server.predict({}).json()
        assert first != second
        assert device == "cpu"
    assert "no postprocess" not in server.log


WRONG = {
    "preprocess": "expected pools with their processes, such as preprocess=4,inference=2",
    "prepocess=2": "there is no pool 'prepocess'; did you mean preprocess?",
    "preprocess=0": "preprocess: workers must be between 1 and 1024",
    "decode=1": "there is no pool 'decode'; use preprocess, inference, postprocess",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_pools_are_explained(text: str) -> None:
    done = panglot("serve", "tests/packages/row_script", "--pools", text)
    assert done.returncode == 3
    assert WRONG[text] in done.stderr


def test_scripts_that_cannot_be_split_say_so(tmp_path: Path) -> None:
    script = tmp_path / "predict.py"
    script.write_text("async def predict(r): return r\n")
    done = panglot("serve", str(script), "--port", "0", "--pools", "preprocess=1")
    assert done.returncode == 3
    assert "a script that runs several requests at once cannot be split into pools" in done.stderr
    script.write_text("def predict(r): return {'n': (lambda: 1) if r.get('bad') else 1}\n")
    with serving(script, "--pools", "postprocess=1") as server:
        assert server.predict({}).json() == {"n": 1}
        assert server.predict({"bad": 1}).status_code == 500
        server.wait_log("its result cannot be sent to another process")
        server.wait_log("the script has no postprocess: its pool only reads or writes the bodies")


def test_an_answer_in_parts_comes_from_the_last_pool(tmp_path: Path) -> None:
    script = tmp_path / "predict.py"
    script.write_text("def preprocess(r): return r['n']\ndef predict(n):\n    for i in range(n): yield i\n")
    with serving(script, "--pools", "preprocess=1") as server:
        assert server.predict({"n": 3}).text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    for text in (script.read_text(), "def chat(messages): return 'hello'\n"):
        script.write_text(text)
        done = panglot("serve", str(script), "--port", "0", "--pools", "postprocess=1")
        assert done.returncode == 3
        assert re.search("an answer in parts, as (predict|chat) gives, cannot be handed to another pool", done.stderr)
        assert "fix: leave postprocess out of --pools" in done.stderr
    script.write_text("def predict(r): return (n for n in range(2)) if r else 1\n")
    with serving(script, "--pools", "postprocess=1") as server:
        assert server.predict({}).json() == 1
        assert server.predict({"n": 3}).status_code == 500
        server.wait_log("an answer in parts cannot be handed to another pool")


def test_a_pool_that_keeps_dying_is_visible() -> None:
    """With nothing to do, twice in a row: then there is a pause, and whoever comes is told."""
    with serving("row_script", *ROW, "--restart-delay", "5", "--restart-delay-max", "5") as server:
        # Ready with one worker of each pool: the other of the first pool would pass for a successor.
        wait_until(lambda: server.metric("panglot_workers", pool="preprocess", state="ready") == 2)
        known = {worker.pid for worker in server.workers()}
        last = server.predict({"id": 1}).json()["pids"][2]
        os.kill(last, signal.SIGKILL)
        wait_until(lambda: {worker.pid for worker in server.workers()} - known)
        (successor,) = {worker.pid for worker in server.workers()} - known
        os.kill(successor, signal.SIGKILL)
        wait_until(lambda: server.client.get("/v2/health/ready").json().get("state") == "back-off")
        assert server.predict({"id": 1}).status_code == 503
        server.wait_log("postprocess worker 0 was killed by SIGKILL")


@pytest.mark.quiet
def test_wall_time_is_not_the_sum_of_the_stages() -> None:
    """Stages of different items overlap: four pre processes of 20 ms and one of 5 ms."""
    item = {"preprocess": "sleep", "inference": "sleep", "seconds": 0.02}
    rates = []
    for flags in ((), ("--pools", "preprocess=4")):
        with serving("row_script", *flags) as server:
            ask_all(server, [{"id": 0, **item}] * 8)
            began = time.monotonic()
            ask_all(server, [{"id": id, **item} for id in range(60)])
            rates.append(60 / (time.monotonic() - began))
    assert rates[1] > 1.5 * rates[0]


def test_a_pool_with_more_workers_than_work_wakes_the_one_before_it() -> None:
    """The inner queue is emptied by the first of several free workers: what waits at the entrance must go on."""
    flags = ("--pools", "preprocess=1,inference=4", "--max-batch", "1", "--queue", "500")
    with serving("row_script", *flags) as server:
        for id, answer in enumerate(ask_all(server, [{"id": id} for id in range(200)])):
            check(answer.json(), id, 8)


def test_inspect_shows_who_does_what() -> None:
    shown = panglot("inspect", "tests/packages/row_script", "--pools", "preprocess=2").stdout
    assert re.search(r"pools +preprocess x 2: decode, preprocess *\n", shown)
    assert re.search(r"\n +inference x 1: inference, postprocess, encode *\n", shown)


def test_a_pool_goes_on_when_what_waited_behind_it_has_left(tmp_path: Path) -> None:
    """A full queue of the next pool holds the one before back. If its clients leave, nobody else may wait for ever."""
    with serving("row_script", "--pools", "preprocess=1,inference=1", "--max-batch", "1") as server:
        gate = Gate(tmp_path / "gate")
        plug = occupy_stage(server, gate, 1, "inference")
        leaving = [Wire(server) for _ in range(9)]
        for client in leaving:
            client.send(post(b'{"id": 2, "brief": true}'))
        wait_until(lambda: server.metric("panglot_queue_length", pool="inference") == 9)
        staying = send(server, NORMAL)
        wait_until(lambda: server.metric("panglot_queue_length", pool="preprocess") == 1)
        for client in leaving:
            client.close()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 2)
        gate.open()
        assert [answer.status for answer in answers(server, [plug, staying])] == [200, 200]
