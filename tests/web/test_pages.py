"""The pages as files and figures: what is served, under which policy, and what it tells whom."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot.engine.interface import Trouble
from panglot.metrics.counters import Metrics
from panglot.web.pages.assets import OURS
from panglot.web.pages.failures import Failures, Owner
from panglot.web.pages.live import seen
from panglot.web.pages.sampling import Counted, between, counted, percentile
from support.server import ROOT, Server, serving, wait_until

PAGES = ("/", "/status", "/docs")
HEAVIEST = 280_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev", "--workers", "2") as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        server.predict({"text": "a fox", "labels": ["fox"], "options": None}, headers={"x-request-id": "good-one"})
        server.predict({"text": "fail", "labels": [], "options": None}, headers={"x-request-id": "bad-one"})
        server.predict({"labels": None}, headers={"x-request-id": "refused-one"})
        yield server


def parts(server: Server, path: str) -> dict[str, bytes]:
    """A page and all that it loads of ours, by path."""
    found = {path: server.client.get(path).content}
    for name in re.findall(r'(?:src|href)="(pages/[^"]+)"', found[path].decode()):
        found[f"/{name}"] = server.client.get(f"/{name}").content
    return found


# Files


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_script_inside_and_allows_none(path: str, server: Server) -> None:
    answer = server.client.get(path)
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search(r"<script>|<script [^>]*>[^<]|\son\w+=|<style|\sstyle=|https?://", answer.text)
    for view in ("./", "status", "docs"):
        assert f'href="{view}"' in answer.text


@pytest.mark.parametrize("path", PAGES[:2])
def test_a_page_is_light(path: str, server: Server) -> None:
    loaded = parts(server, path)
    assert len(loaded) > 5
    assert sum(map(len, loaded.values())) <= HEAVIEST
    imported = {
        f"/pages/{name}" for text in loaded.values() for name in re.findall(r'from "\./([^"]+)"', text.decode())
    }
    assert imported <= loaded.keys(), "everything is named in the page, so that nothing waits for something else"


def test_all_pages_together_are_light() -> None:
    """Those of dialects and both languages included; Swagger UI is not ours."""
    folders = [OURS, *(ROOT / "src" / "panglot" / "dialects").glob("*/pages")]
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) <= HEAVIEST


def test_files_are_asked_for_anew_and_sent_once(server: Server) -> None:
    first = server.client.get("/pages/panglot.css")
    assert first.headers["content-type"] == "text/css; charset=utf-8"
    assert first.headers["x-content-type-options"] == "nosniff"
    again = server.client.get("/pages/panglot.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert server.client.get("/pages/panglot.css", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["page.html", "..%2fassets.py", "%2e%2e", "assets.py", "nothing.js", "%00", "static"])
def test_no_other_file_is_served(name: str, server: Server) -> None:
    assert server.client.get(f"/pages/{name}").status_code == 404


def test_a_server_without_a_playground() -> None:
    with serving("function", "--no-playground") as server:
        text = server.client.get("/").text
        assert "pages/status.js" in text
        assert "Playground" not in text


# The playground's data


def test_the_playground_begins_with_the_example(server: Server) -> None:
    about = server.client.get("/playground.json").json()
    assert about["models"][0]["requests"][0]["body"]["value"]["text"] == "a quick brown fox"
    assert (about["state"], about["token"]) == ("ready", False)


def test_only_files_of_the_example_are_handed_out(tmp_path: Path) -> None:
    script = "def predict(request):\n    return 1\n\n\ndef example():\n    return {'image': open('dot.png', 'rb')}\n"
    (tmp_path / "model.py").write_text(script)
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "secret.pem").write_text("secret")
    with serving(tmp_path) as server:
        about = server.client.get("/playground.json").json()["models"][0]
        assert about["files"] == ["dot.png"]
        assert about["requests"][0]["body"] == {"kind": "file", "file": "dot.png", "type": "image/png"}
        sample = server.client.get("/samples/dot.png")
        assert (sample.headers["content-type"], sample.content) == ("image/png", b"\x89PNG\r\n\x1a\n")
        for name in ("secret.pem", "model.py", "..%2fdot.png", "nothing.png"):
            assert server.client.get(f"/samples/{name}").status_code == 404


# Figures


def test_the_figures(server: Server) -> None:
    wait_until(lambda: server.client.get("/status.json").json()["answered"] == 3)
    told = server.client.get("/status.json").json()
    assert [entry["id"] for entry in told["recent"]] == ["good-one", "bad-one", "refused-one"]
    assert [entry["status"] for entry in told["recent"]] == [200, 500, 422]
    assert (told["state"], told["refused"], told["failed"]) == ("ready", 1, 1)
    assert {worker["pid"] for worker in told["workers"]} == {worker.pid for worker in server.workers()}
    assert all(worker["memory"] > 1_000_000 for worker in told["workers"])
    assert told["front"]["memory"] > 1_000_000
    groups = {(group["kind"], group["what"]): group for group in told["errors"]}
    assert groups["answers", "422 Unprocessable Entity · /predict"]["count"] == 1
    failed = groups["script", "RuntimeError: <b>asked</b> to fail"]
    assert (failed["count"], failed["request_id"]) == (1, "bad-one")
    assert "model.py" in failed["traceback"]
    assert told["batches"] == [[1, 3]] or sum(count for _, count in told["batches"]) <= 3


def test_one_request_with_what_was_logged(server: Server) -> None:
    told = server.client.get("/status/bad-one").json()
    assert told["stages"]["inference"] > 0
    assert any("bad-one" in line["text"] for line in told["log"])
    assert told["traceback"].rstrip().endswith("RuntimeError: <b>asked</b> to fail")
    assert server.client.get("/status/unknown").status_code == 404


def test_tracebacks_are_told_only_in_development() -> None:
    with serving("documented_json") as quiet:
        quiet.predict({"text": "fail", "labels": [], "options": None}, headers={"x-request-id": "bad-one"})
        wait_until(lambda: quiet.client.get("/status.json").json()["errors"])
        for path in ("/status.json", "/status/bad-one"):
            text = quiet.client.get(path).text
            assert "RuntimeError" not in text
            assert "bad-one" in text


def events(server: Server, most: int) -> list[tuple[str, dict[str, Any]]]:
    found = []
    with server.client.stream("GET", "/status/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        kind = ""
        for line in answer.iter_lines():
            kind = line.removeprefix("event: ") if line.startswith("event: ") else kind
            if line.startswith("data: "):
                found.append((kind, json.loads(line[6:])))
                if len(found) == most:
                    break
    return found


def test_the_feed(server: Server) -> None:
    (first, whole), (second, tick) = events(server, 2)
    assert (first, second) == ("snapshot", "tick")
    assert len(whole["history"]) >= 1
    assert len(whole["history"][0]) == len(tick["sample"]) == 12
    assert "history" not in tick
    assert server.client.head("/status/events").status_code == 200


def test_whoever_looks_does_not_keep_the_server_from_stopping() -> None:
    with serving("function") as server, server.client.stream("GET", "/status/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: snapshot"
        server.process.send_signal(signal.SIGTERM)
        assert [line for line in lines if line.startswith("event: lost")] == []
        assert server.process.wait(20) == 0


def test_reload_is_a_post(server: Server) -> None:
    before = {worker.pid for worker in server.workers()}
    assert server.client.get("/reload").status_code == 405
    assert server.client.post("/reload", headers={"origin": "http://evil.example"}).status_code == 403
    assert server.client.post("/reload").status_code == 202
    wait_until(lambda: server.workers() and not before & {worker.pid for worker in server.workers()}, 30)


# How they are made


def test_percentiles_lie_in_their_bucket() -> None:
    counts = [0] * 64
    counts[10] = 100
    assert 512 < percentile(counts, 0.5) == 768
    assert percentile(counts, 1.0) == 1024
    counts[20] = 1
    assert percentile(counts, 0.5) < 1024
    assert percentile(counts, 0.999) > 2**19
    assert percentile([0] * 64, 0.5) == 0


def test_rates_are_of_what_came_since() -> None:
    metrics = Metrics()
    metrics.requests["/predict", 200] = 100
    metrics.requests["/metrics", 200] = 5000
    before = counted([metrics], frozenset({"/predict"}), 10.0)
    metrics.requests["/predict", 200] += 30
    metrics.requests["/predict", 422] += 4
    metrics.requests["/predict", 503] += 2
    metrics.latency["/predict"].add(1000)
    rates, latency, batch = between(before, counted([metrics], frozenset({"/predict"}), 12.0))
    assert rates == [15.0, 2.0, 1.0]
    assert 0.5 < latency[0] <= 1.024
    assert batch == 0
    assert between(Counted(0.0), Counted(0.0))[0] == [0, 0, 0]


def test_every_failure_is_shown_once() -> None:
    """Where a script's failure or a worker's death is the reason of an answer, the answer is not listed as well."""
    failures, metrics, owner, routes = Failures(), Metrics(), Owner("model"), frozenset({"/predict"})
    metrics.requests["/predict", 500] = 3
    metrics.requests["/predict", 503] = 1
    raised = Trouble(1.0, "one", "the script failed", "Traceback")
    died = [Trouble(2.0, "", "worker 0 died", "", ("two",)), Trouble(2.5, "", "worker 1 died", "", ("two",))]
    answered = {"one": ("/predict", 500), "two": ("/predict", 500), "other": ("/predict", 503)}
    failures.update(owner, metrics, [raised, died[0]], routes, answered)
    failures.update(owner, metrics, [raised, *died], routes, answered)
    answers = [(group["what"], group["count"]) for group in failures.shown() if group["kind"] == "answers"]
    assert set(answers) == {
        ("500 Internal Server Error · /predict", 1),
        ("503 Service Unavailable · /predict", 1),
    }
    assert sum(group["count"] for group in failures.shown()) == 5
    # A failure that has left the recent requests before anybody looked is still explained.
    lost = Trouble(3.0, "three", "the script failed", "Traceback")
    for _ in range(5):
        failures.update(owner, metrics, [raised, *died, lost], routes, {})
    assert [group["what"][:3] for group in failures.shown() if group["kind"] == "answers"] == ["503"]


def test_a_dropped_request_is_shown_once() -> None:
    """With the reason, and not by the status of its answer too."""
    failures, metrics, owner, routes = Failures(), Metrics(), Owner("model"), frozenset({"/predict", "/other"})
    metrics.dropped |= {"queue_full": 5, "deadline": 2, "poisonous": 1, "disconnected": 9}
    metrics.requests |= {
        ("/predict", 200): 40, ("/predict", 503): 3, ("/other", 503): 2, ("/predict", 504): 3, ("/predict", 422): 4,
    }  # fmt: skip
    failures.update(owner, metrics, (), routes, {})
    shown = {group["what"]: group["count"] for group in failures.shown()}
    assert shown == {
        "dropped: queue_full": 5,
        "dropped: deadline": 2,
        "dropped: poisonous": 1,
        "504 Gateway Timeout · /predict": 1,
        "422 Unprocessable Entity · /predict": 3,
    }


def test_a_platform_may_answer_what_is_dropped_in_its_own_way() -> None:
    failures, metrics = Failures(), Metrics()
    metrics.dropped["queue_full"] = 4
    metrics.requests["/predict", 502] = 4
    failures.update(Owner("model"), metrics, (), frozenset({"/predict"}), {})
    assert [group["what"] for group in failures.shown()] == ["dropped: queue_full"]


def test_deaths_are_one_group_whichever_requests_they_cost() -> None:
    failures = Failures()
    died = [Trouble(float(n), "", f"worker 0 ended; it held 1 request: id-{n}", "", (f"id-{n}",)) for n in range(3)]
    failures.update(Owner("model"), Metrics(), died, frozenset(), {})
    assert [(group["what"], group["count"]) for group in failures.shown()] == [("worker 0 ended; it held 1 request", 3)]


def test_a_stop_is_no_failure() -> None:
    failures, metrics = Failures(), Metrics()
    metrics.dropped["disconnected"] = 2
    metrics.dropped["queue_full"] += 0
    failures.update(Owner("model"), metrics, (), frozenset(), {})
    assert failures.shown() == []


def test_failures_are_grouped_and_bounded() -> None:
    failures, metrics = Failures(), Metrics()
    owner = Owner("model", dev=True)
    routes = frozenset({"/predict"})
    troubles = [Trouble(float(n), f"id-{n}", "failed", "Traceback\nValueError: bad") for n in range(3)]
    failures.update(owner, metrics, troubles, routes, {})
    failures.update(owner, metrics, troubles[1:], routes, {})
    assert [(group["what"], group["count"]) for group in failures.shown()] == [("ValueError: bad", 3)]
    failures.update(
        owner, metrics, [Trouble(float(n), f"id-{n}", "failed", f"ValueError: {n}") for n in range(500)], routes, {}
    )
    assert len(failures.shown()) == 100
    died = Trouble(1000.0, "", "worker 0 was killed by SIGKILL", "")
    failures.update(owner, metrics, [died], routes, {})
    assert failures.deaths == [(owner, died)]
    assert failures.shown()[0]["kind"] == "worker"


def test_what_hides_is_spelt_out() -> None:
    assert seen("a\u202eb\x07\n\tc\ud800") == "a\\u202eb\\x07\n\tc\\ud800"
