"""What C libraries and started programs print is in the logs of a prediction, as on the platform."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import Server, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("cog_native", "--workers", "1") as running:
        yield running


def predicted(server: Server, how: str, **more: Any) -> Any:
    answer = server.client.post("/predictions", json={"input": {"how": how, **more}}).json()
    assert answer["status"] == "succeeded", answer
    return answer


@pytest.mark.document("cog.26")
def test_it_is_in_the_logs_in_its_order(server: Server) -> None:
    logs = predicted(server, "order")["logs"]
    # Two pipes have no order between them: what libraries write into both of them may be swapped.
    assert [line for line in logs.splitlines() if line != "four"] == [
        "one",
        "two",
        "three",
        "five",
        "six, sieben ü",
        "eight",
    ]
    assert "four" in logs.splitlines()
    for line in ("two", "four", "five"):
        server.wait_log(rf"(?m)^.*\b{line}\b.*$")


def test_what_is_in_the_buffer_of_a_library_is_of_its_call(server: Server) -> None:
    assert predicted(server, "buffered")["logs"] == "in the buffer of the library"
    assert predicted(server, "nothing")["logs"] == ""


@pytest.mark.document("cog.26")
def test_programs_and_forks_are_heard(server: Server) -> None:
    logs = predicted(server, "programs")["logs"].splitlines()
    assert sorted(logs) == ["an error", "from a shell", "into our own stream", "more"]
    answer = predicted(server, "fork")
    assert (answer["logs"], answer["output"]) == ("from a forked process\n", "0")
    # A fork must not have used the line to the front.
    assert predicted(server, "nothing")["output"] == "1"


def test_what_setup_prints_is_in_the_health_check(server: Server) -> None:
    assert server.client.get("/health-check").json()["setup"]["logs"] == "a library sets up\n"


def test_a_library_that_prints_much_while_nobody_can_read_is_not_stuck(server: Server) -> None:
    logs = predicted(server, "much", size=900_000)["logs"]
    assert logs.startswith("[...]\n")
    assert logs.endswith("x\n")
    assert len(logs) <= 65536 + 6


def test_a_library_that_prints_megabytes_without_a_newline_in_one_call_is_not_stuck(server: Server) -> None:
    logs = predicted(server, "at_once", size=10_000_000)["logs"]
    assert logs == "[...]\n" + "y" * 65535 + "\n"


def test_a_signal_handler_that_prints_amid_a_print_is_not_stuck() -> None:
    # A server of its own: so many lines are more than the log takes in a second.
    with serving("cog_native", "--workers", "1") as server:
        logs = predicted(server, "alarms", size=3_000)["logs"]
    assert "alarm" in logs
    assert "2999" in logs


def test_a_program_that_outlives_its_call_is_in_the_log_and_in_no_answer(server: Server, tmp_path: Path) -> None:
    gate, line = tmp_path / "gate", len(server.lines)
    assert predicted(server, "later", gate=str(gate))["logs"] == ""
    gate.touch()
    server.wait_log("much later", after=line)
    wait_until((tmp_path / "gate.said").exists)
    assert predicted(server, "nothing")["logs"] == ""


def test_a_program_that_never_stops_printing_holds_up_no_answer() -> None:
    with serving("cog_native", "--workers", "1") as server:
        logs = predicted(server, "floods")["logs"]
        assert "flood" in logs
        assert len(logs) <= 65536 + 6
        for _ in range(20):
            predicted(server, "order")
        assert predicted(server, "floods_end")["output"] == "-9"
        assert predicted(server, "nothing")["logs"] == ""


def test_bars_of_a_library_tell_how_far_a_job_is(server: Server, tmp_path: Path) -> None:
    body = {"input": {"how": "slowly", "gate": str(tmp_path / "gate")}}
    job = server.client.post("/predictions", json=body, headers={"prefer": "respond-async"}).headers["location"]
    wait_until(lambda: server.client.get(job).json()["progress"] == {"progress": 0.5, "text": "drawing 4/8"})
    (tmp_path / "gate").touch()
    wait_until(lambda: server.client.get(job).json()["state"] == "done")
    assert "50%" in server.client.get(f"{job}/result").json()["logs"]


def test_the_last_words_of_a_crash_are_in_the_log(server: Server) -> None:
    line = len(server.lines)
    answer = server.client.post("/predictions", json={"input": {"how": "dies"}})
    assert answer.status_code == 500 or answer.json()["status"] == "failed", answer.text
    server.wait_log("last words of a library", after=line)
    server.wait_log("SIGABRT", after=line)
    wait_until(lambda: server.client.get("/v2/health/ready").status_code == 200)
    assert predicted(server, "order")["logs"]


@pytest.mark.quiet
def test_a_script_that_closes_its_descriptors_goes_on_and_burns_nothing(server: Server) -> None:
    predicted(server, "closes")
    assert predicted(server, "nothing")["logs"] == ""
    (worker,) = server.workers()
    spent = sum(worker.cpu_times()[:2])
    for _ in range(20):
        predicted(server, "nothing")
    assert sum(worker.cpu_times()[:2]) - spent < 0.5
