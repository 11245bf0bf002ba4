"""`panglot bench`: figures that can be trusted, of a server that may lie."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from panglot.tools.bench import autolog, figures, report_page, report_table
from panglot.tools.bench.answer_parser import AnswerParser
from panglot.tools.bench.histogram import FineHistogram
from panglot.tools.bench.levels import Level, Load
from panglot.tools.bench.load import LoadOutcome, LoadPlan, LoadRun, as_good
from panglot.tools.bench.process_cost import tree
from panglot.tools.bench.target import Batches
from panglot.tools.listening import listener
from support.browser import browsing
from support.server import PACKAGES, ROOT, Server, panglot, serving
from support.terminal import in_terminal

ECHO = ROOT / "benchmarks" / "overhead" / "packages" / "echo_batch"
SLEEPY = PACKAGES / "check_sleepy"
SHORT = ("--duration", "0.6", "--warmup", "0.1")


# Parts


def test_percentiles_are_those_of_the_values() -> None:
    source = random.Random(4)
    for values in ([0], [7] * 50, [int(source.expovariate(1e-4)) for _ in range(5000)], list(range(1000))):
        ordered = sorted(values)
        counted = FineHistogram().add(values)
        for share in (1, 50, 90, 99, 99.9, 100):
            wanted = ordered[max(1, math.ceil(len(ordered) * share / 100)) - 1]
            assert math.isclose(counted.percentile(share), wanted, rel_tol=0.008, abs_tol=0.5)
        assert FineHistogram.of(json.loads(json.dumps(counted.as_dict()))).counts == counted.counts


HEAD = b"HTTP/1.1 200 OK\r\nServer-Timing: queue;dur=0.1, total;dur=1.5\r\n"
PLAIN = HEAD + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n"


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_answers_are_cut_out_of_what_arrives(piece: int) -> None:
    parser = AnswerParser()
    found = []
    for whole in (PLAIN, CHUNKED, PLAIN, b"HTTP/1.1 204 No Content\r\n\r\n", PLAIN):
        for start in range(0, len(whole), piece):
            if parser.feed(whole[start : start + piece]):
                assert start + piece >= len(whole)
                found.append((parser.status, parser.timing))
                assert parser.is_answer(b"hello") == (whole is PLAIN)
                assert parser.is_answer(b"abcde") == (whole is CHUNKED)
    assert [status for status, _ in found] == [200, 200, 200, 204, 200]
    assert found[0][1] == b"queue;dur=0.1, total;dur=1.5"


@pytest.mark.parametrize(
    "junk", [b"nonsense", b"HTTP/1.1 abc\r\n\r\n", b"\x16\x03\x01\x02", b"HTTP/1.1" + b"a" * 70000]
)
def test_what_is_no_http_is_told(junk: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        AnswerParser().feed(junk)


def test_batches_of_several_pools_count_together() -> None:
    text = "".join(
        f'panglot_batch_size_bucket{{pool="{pool}",le="2"}} {two}\n'
        f'panglot_batch_size_bucket{{pool="{pool}",le="4"}} {four}\n'
        f'panglot_batch_size_bucket{{pool="{pool}",le="+Inf"}} {four}\n'
        f'panglot_batch_size_sum{{pool="{pool}"}} 9\npanglot_batch_size_count{{pool="{pool}"}} {four}\n'
        for pool, two, four in (("a", 1, 3), ("b", 2, 2))
    )
    found = Batches.of(text)
    assert (found.sizes, found.count, found.items) == ({2: 3, 4: 2}, 5, 18)
    assert found.since(found) == Batches({}, 0, 0)


def level(throughput: float = 100.0, p99: float = 5.0, scatter: float = 0.01, **given: Any) -> Level:
    source = random.Random(1)
    slices = [
        {
            "throughput": throughput * (1 + source.gauss(0, scatter)),
            "p50": 2 * (1 + source.gauss(0, scatter)),
            "p99": p99 * (1 + source.gauss(0, scatter)),
        }
        for _ in range(10)
    ]
    latency = {"mean": 2.2, "min": 1.0, "p50": 2.0, "p90": 3.0, "p95": 4.0, "p99": p99, "p99.9": 6.0, "max": 7.0}
    cost = {"cpu": 0.5, "memory": 10**8, "gpu_use": None, "gpu_memory": None, "processes": 2}
    histogram = FineHistogram().add([2000] * 99 + [5000]).as_dict()
    stages = {"queue": {"mean": 0.5}, "inference": {"mean": 1.0}, "total": {"mean": 2.0}}
    values: dict[str, Any] = {
        "load": Load(concurrency=4), "seconds": 1.0, "requests": 100, "throughput": throughput, "latency": latency,
        "histogram": histogram, "statuses": {"200": 100}, "errors": {}, "unanswered": 0, "stages": stages,
        "batches": {"2": 40, "4": 10}, "mean_batch": 2.0, "cost": cost, "generator": {"cpu": 0.1, "late_p99": 0.0},
        "slices": slices,
    }  # fmt: skip
    return Level(**{**values, **given})


def test_changes_count_only_beyond_the_noise() -> None:
    old = figures.Bench("x", "plain", 1, [level()])

    def verdicts(new: Level) -> dict[str, str]:
        changes = figures.compare(old, figures.Bench("x", "", 1, [new]))
        return {change.figure: change.verdict for change in changes}

    assert verdicts(level()) == {"throughput": "same", "p50": "same", "p99": "same"}
    assert verdicts(level(throughput=120, p99=8)) == {"throughput": "better", "p50": "same", "p99": "worse"}
    assert verdicts(level(throughput=120, p99=8, scatter=0.9))["throughput"] == "same"
    assert verdicts(level(throughput=80))["throughput"] == "worse"
    assert figures.compare(old, figures.Bench("x", "", 1, [level(load=Load(concurrency=5))])) == []


def test_last_digits_make_no_answer_wrong() -> None:
    right = b'{"score":0.25,"names":["a"],"rows":[[1,2]]}'
    assert as_good(b'{"score":0.2500000001,"names":["a"],"rows":[[1,2.0]]}', right)
    for wrong in (b'{"score":0.251,"names":["a"],"rows":[[1,2]]}', b'{"score":0.25,"names":["b"],"rows":[[1,2]]}',
                  b'{"score":0.25,"names":["a"]}', b"no JSON", b"", b"{}"):  # fmt: skip
        assert not as_good(wrong, right)


def test_gpus_are_shown_where_there_are_some() -> None:
    cost = {"cpu": 0.5, "memory": 10**8, "gpu_use": 44.1, "gpu_memory": 1485.0, "processes": 2}
    bench = figures.Bench("x", "plain", 1, [level(cost=cost), level()])
    console = Console(width=160, record=True, file=io.StringIO())
    rows = report_table.Levels(console, checked=False, gpu=True)
    for place, entry in enumerate(bench.levels):
        rows.add(entry, is_first=place == 0)
    assert re.search(r"GPU +GPU memory.*44 % +1485 MiB", console.export_text(), re.DOTALL)
    assert "44 %, 1485 MiB" in report_page.render(bench)
    assert "gpu_rss(MB): 1485.0, gpu_util: 44.1%" in autolog.block(bench.levels[0], {})


def test_a_bench_is_read_as_it_was_written(tmp_path: Path) -> None:
    bench = figures.begin("x", "plain", 1, "2")
    bench.levels.append(level())
    figures.save(bench, tmp_path / "b.json")
    assert figures.read(tmp_path / "b.json") == bench


def test_the_generator_knows_when_it_is_the_bottleneck() -> None:
    assert "itself was the bottleneck" in level(generator={"cpu": 0.97, "late_p99": 0.0}).warnings()[0]
    late = level(load=Load(rate=10), generator={"cpu": 0.1, "late_p99": 30.0})
    assert "too busy" in late.warnings()[0]
    assert level().warnings() == []


# A real server


@pytest.fixture(scope="module")
def echo() -> Iterator[Server]:
    with serving(ECHO) as server:
        yield server


def test_a_server_that_runs_is_measured(echo: Server, tmp_path: Path) -> None:
    saved, html = tmp_path / "b.json", tmp_path / "b.html"
    words = ("bench", echo.url, '{"x": [1, 2, 3]}', "[4]", "--concurrency", "1,16", "--rate", "100", "--check", *SHORT)
    done = panglot(*words, "--save", str(saved), "--html", str(html), "--auto-log")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(saved.read_text())
    rate, one, many = found["levels"]
    assert [entry["load"] for entry in (rate, one, many)] == [
        {"concurrency": 0, "rate": 100.0}, {"concurrency": 1, "rate": 0.0}, {"concurrency": 16, "rate": 0.0},
    ]  # fmt: skip
    assert found["dialect"] == "plain"
    for entry in (rate, one, many):
        assert entry["statuses"] == {"200": entry["requests"]}, "those of the warm-up are not counted"
        assert (entry["wrong"], entry["checked"]) == (0, entry["requests"])
        assert entry["errors"] == {}
        figures_ = entry["latency"]
        assert figures_["min"] <= figures_["p50"] * 1.01 <= figures_["p99"] * 1.02 <= figures_["max"] * 1.03
        assert figures_["p99.9"] <= figures_["max"]
        assert {"queue", "decode", "inference", "encode", "total"} <= entry["stages"].keys()
        assert entry["cost"]["memory"] > 10**7
        assert entry["cost"]["processes"] >= 2
    assert 20 <= rate["requests"] <= 180
    assert one["mean_batch"] == 1
    assert many["mean_batch"] > 1.5
    assert "answers/s" in done.stdout
    block = done.stdout[done.stdout.index("Env info") :]
    for line in ("runtime_device: ", "data_num: ", "cpu_rss(MB): ", "preprocess_time(ms): 0.0, inference_time(ms): "):
        assert line in block
    assert "under load" in html.read_text()


@pytest.mark.quiet
def test_the_generator_costs_less_than_what_it_measures(echo: Server, tmp_path: Path) -> None:
    saved = tmp_path / "b.json"
    done = panglot("bench", echo.url, "[4]", "--concurrency", "16", *SHORT, "--save", str(saved))
    assert done.returncode == 0, done.stdout + done.stderr
    (level,) = json.loads(saved.read_text())["levels"]
    assert level["generator"]["cpu"] < level["cost"]["cpu"]


def test_a_package_is_served_for_the_occasion_and_wrong_answers_are_found(tmp_path: Path) -> None:
    saved = tmp_path / "b.json"
    words = ("bench", str(PACKAGES / "check_fickle"), '{"numbers": [1, 2]}', "--concurrency", "2", *SHORT)
    done = panglot(*words, "--check", "--save", str(saved), "--no-auto-log")
    assert done.returncode == 1, done.stderr
    found = json.loads(saved.read_text())["levels"][0]
    assert 0.1 < found["wrong"] / found["checked"] < 0.3
    assert '{"sum":4}' in found["first_wrong"]
    assert "the first wrong answer" in done.stderr
    # Who does not ask whether answers are right is told about speed alone.
    done = panglot(*words, "--compare", str(saved), "--no-auto-log")
    assert "against 20" in done.stdout
    assert "throughput" in done.stdout


def test_without_inputs_its_example_is_sent_and_figures_are_printed_as_json() -> None:
    done = panglot("bench", str(PACKAGES / "documented_json"), "--concurrency", "2", "--json", *SHORT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["inputs"] == 1
    assert {"bench", "target", "dialect", "inputs", "levels", "machine", "when", "panglot"} == set(found)
    done = panglot("bench", str(PACKAGES / "function"), *SHORT)
    assert done.returncode == 3
    assert "there is no example that could be sent (fix: name files" in done.stderr


def test_a_narrow_terminal_gets_fewer_columns_and_each_load_as_it_ends(echo: Server) -> None:
    words = ["panglot", "bench", echo.url, "1", "--concurrency", "1,2", *SHORT]
    shown = in_terminal(words, 80).screen
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["load", "answers/s", "p50", "p95", "p99", "max", "failed", "batch"]
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"]
    assert "no room for: mean ms, p99.9, CPU, memory (--json has them)" in shown
    assert "Env info" not in shown, "that is for packages of AutoLog's chain"


def run_load(plan: LoadPlan) -> LoadOutcome:
    async def run() -> LoadOutcome:
        return await LoadRun(plan).run()

    return asyncio.run(run())


def request(port: int, value: Any, path: str = "/predict") -> str:
    body = json.dumps(value).encode()
    about = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return base64.b64encode(f"POST {path} HTTP/1.1\r\n{about}\r\n\r\n".encode() + body).decode()


class OneAtATime(asyncio.Protocol):
    """A server with one till: an answer comes `SERVICE` after the one before it, or after its own request.

    It reckons with moments, not with sleeps, so that a busy machine does not add up.
    """

    free_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        OneAtATime.free_at = max(loop.time(), OneAtATime.free_at) + SERVICE
        loop.call_at(OneAtATime.free_at, self.transport.write, PLAIN)


SERVICE = 0.012


@pytest.mark.quiet
def test_latencies_of_a_rate_are_those_of_a_queue() -> None:
    """At 80 % of capacity, against a simulation fed the run's own moments and the same service time."""

    async def run() -> LoadOutcome:
        server = await asyncio.get_running_loop().create_server(OneAtATime, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        outcome = await LoadRun(
            LoadPlan("127.0.0.1", port, [request(port, {})], rate=0.8 / SERVICE, duration=6, warmup=0, seed=5)
        ).run()
        server.close()
        return outcome

    ratios: list[float] = []
    for _ in range(3):
        outcome = asyncio.run(run())
        assert (outcome.unanswered, outcome.errors) == (0, {})
        assert len(outcome.latencies) > 300
        simulated, free_at = [], 0.0
        for begun in sorted(outcome.begun):
            free_at = max(begun / 1e6, free_at) + SERVICE
            simulated.append(free_at * 1e6 - begun)
        measured, expected = (
            FineHistogram().add(found).percentile(99) / 1e6 for found in (outcome.latencies, simulated)
        )
        assert expected > 3 * SERVICE
        ratios.append(measured / expected)
        # A pause of the whole machine is in one of them: it is not the generator's.
        if 0.8 < ratios[-1] < 1.2:
            break
    assert 0.8 < ratios[-1] < 1.2, ratios


@pytest.mark.quiet
def test_a_server_that_cannot_keep_up_shows_in_the_latency(tmp_path: Path) -> None:
    """Twice as much as it can do: who comes at the end has waited for half of the time."""
    with serving(SLEEPY) as server:
        asked = [request(server.port, {"seconds": 0.02})]
        plan = LoadPlan("127.0.0.1", server.port, asked, rate=100, even=True, duration=2, warmup=0, connections=150)
        outcome = run_load(plan)
    last = max(zip(outcome.begun, outcome.latencies, strict=True))[1] / 1e6
    assert 0.7 < last < 6
    assert len(outcome.latencies) > 150


def test_a_server_that_goes_away_is_told_and_not_waited_for() -> None:
    with serving(SLEEPY) as server:
        asked = [request(server.port, {"seconds": 0.01})]
        plan = LoadPlan("127.0.0.1", server.port, asked, concurrency=2, duration=1.5, warmup=0.1, timeout=2)

        async def run() -> LoadOutcome:
            asyncio.get_running_loop().call_later(0.6, server.process.kill)
            return await LoadRun(plan).run()

        outcome = asyncio.run(run())
    assert outcome.answered > 10
    assert any("connect" in why for why in outcome.errors)


def test_failures_are_counted(echo: Server) -> None:
    asked = [request(echo.port, [1]), request(echo.port, [1], "/nowhere")]
    outcome = run_load(LoadPlan("127.0.0.1", echo.port, asked, concurrency=2, duration=0.3, warmup=0))
    assert set(outcome.statuses) == {"200", "404"}


def test_the_processes_of_a_server_are_found(echo: Server) -> None:
    assert listener(echo.port) == echo.process.pid
    family = tree(echo.process.pid)
    assert {worker.pid for worker in echo.workers()} < family.keys()
    assert tree(2**22 + 1) == {}


# What is shown

BEYOND = """[...document.querySelectorAll("svg text")].filter(text => {
    const box = text.getBBox(); return box.x < 0 || box.x + box.width > 520;
}).map(text => text.textContent)"""


def test_the_page_is_whole_in_itself_light_and_dark(tmp_path: Path) -> None:
    bench = figures.begin("/srv/<b>models</b>", "plain", 2, "2")
    wild = {"wrong": 3, "checked": 50, "stages": {}, "batches": {}, "generator": {"cpu": 0.99, "late_p99": 0.0}}
    bench.levels += [level(), level(load=Load(rate=250.5), **wild), level(load=Load(concurrency=64))]
    changes = figures.compare(figures.Bench("x", "", 1, [level(throughput=50)]), bench)
    report_page.write(bench, tmp_path / "bench.html", changes)
    with browsing() as browser:
        for dark in (False, True):
            browser.resize(1200, 1000, dark=dark)
            browser.open((tmp_path / "bench.html").as_uri())
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            red = int(ground.partition("(")[2].partition(",")[0])
            assert (red < 60) if dark else (red > 200)
            assert browser.run("document.querySelectorAll('svg').length") == 4
            assert browser.run("document.documentElement.scrollWidth <= innerWidth")
            # Nothing is written beyond the edge of its plot.
            assert browser.run(BEYOND) == []
        text = browser.text()
        assert browser.requested == [(tmp_path / "bench.html").as_uri()] * 2
        assert browser.complaints == []
    for words in ("most answers", "wrong answers of 50", "itself was the bottleneck", "<b>models</b>", "better"):
        assert words in text


def test_the_block_has_the_lines_of_autolog() -> None:
    about = {"model_name": "classification", "runtime_device": "cpu", "paddle_version": "3.3.1"}
    lines = autolog.block(level(), about, now=0).splitlines()
    stamps = {line[: len("[1970/01/01 00:00:00]")] for line in lines}
    assert len(stamps) == 1
    words = [line.partition("INFO: ")[2] for line in lines]
    assert " model_name: classification" in words
    assert " paddle_version: 3.3.1" in words
    assert " batch_size: 2" in words
    assert " data_num: 100" in words
    assert " cpu_rss(MB): 100.0, gpu_rss(MB): None, gpu_util: None%" in words
    assert " preprocess_time(ms): 0.0, inference_time(ms): 1.0, postprocess_time(ms): 0.0" in words


@pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="paddlepaddle is not installed")
def test_the_block_of_a_paddle_package_has_its_own_switches() -> None:
    package = ROOT / "examples" / "paddle"
    done = panglot(
        "bench", str(package), str(package / "images" / "demo.png"), "--concurrency", "2", *SHORT, seconds=110
    )
    assert done.returncode == 0, done.stderr
    block = dict(re.findall(r"INFO:  (\w+): (.*)", done.stdout))
    assert (block["ir_optim"], block["enable_memory_optim"], block["runtime_device"]) == ("True", "True", "cpu")
    assert re.fullmatch(r"\d+\.\d+\.\d+", block["paddle_version"])
    times = re.search(r"preprocess_time\(ms\): ([\d.]+), inference_time\(ms\): ([\d.]+), postprocess_time", done.stdout)
    assert times is not None
    assert all(float(figure) > 0 for figure in times.groups())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("http://127.0.0.1:9", "{}"), "does not answer: Connection refused"),
        ((str(ECHO),), "no inputs"),
        ((str(ECHO), "{", *SHORT), "not JSON"),
        ((str(ECHO), "{}", "--concurrency", "many"), "take numbers"),
        ((str(ECHO), "{}", "--rate", "-5"), "larger than 0"),
        ((str(ECHO), "{}", "--compare", str(ROOT / "pyproject.toml")), "no result of panglot bench"),
        ((str(PACKAGES / "broken" / "load_fails"), "{}"), "model.py:6: running load() failed"),
        ((str(ROOT / "examples" / "digits"), '{"no": "picture"}'), "with status 400"),
    ],
)
def test_wrong_uses_are_told_in_one_line(words: tuple[str, ...], said: str) -> None:
    done = panglot("bench", *words)
    assert done.returncode == 3
    assert said in done.stderr.splitlines()[-1]


def test_times_are_those_of_settings() -> None:
    for given, said in (("x", "such as 30, 30s, 500ms or 2m"), ("100ms", "at least 0.2 s"), ("3y", "no unit of time")):
        done = panglot("bench", str(ECHO), "{}", "--duration", given)
        assert done.returncode == 3
        assert said in done.stderr.splitlines()[-1]
    done = panglot("bench", str(ECHO), "{}", "--duration", "300ms", "--warmup", "0s", "--timeout", "1m", "--json")
    assert done.returncode == 0, done.stderr


def test_somebody_without_patience_gets_what_there_is(echo: Server) -> None:
    words = [sys.executable, "-m", "panglot", "bench", echo.url, "{}", "--concurrency", "1,2", "--duration", "1.5"]
    process = subprocess.Popen(
        [*words, "--warmup", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    )
    assert process.stdout is not None
    said = process.stdout.readline() + process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    said += rest
    assert "1 at once" in said
