"""Logs: who said what about which request; and spans for those who collect them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.fronts import client_of, pids
from support.server import PACKAGES, ROOT, panglot, serving, wait_until

GOT = """
from panglot import route


@route("/now", methods=["GET", "PUT"])
def now():
    return "noon"
"""


def test_json_lines_carry_package_worker_and_request() -> None:
    with serving("prints", "--log-format", "json", "--access-log", "1") as server:
        server.predict("tea", headers={"x-request-id": "job-1"})
        server.wait_log("job-1")
        server.stop()
        lines = [json.loads(line) for line in server.lines]
    printed = next(line for line in lines if line["message"] == "asked for tea")
    assert (printed["package"], printed["worker"], printed["source"]) == ("prints", 0, "script")
    access = next(line for line in lines if line["source"] == "access")
    assert (access["request_id"], access["worker"]) == ("job-1", 0)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)
    assert {"time", "level", "source", "message"} <= set.intersection(*(set(line) for line in lines))
    assert "inference" in access["stages"] or "decode" in access["stages"]


def test_json_lines_of_a_failure_have_its_traceback_apart() -> None:
    """The message is one line for a list of messages; which request, which worker and why are fields."""
    with serving("results", "--log-format", "json") as server:
        server.predict({"kind": "raise"}, headers={"x-request-id": "job-2"})
        server.wait_log("secret detail")
        server.stop()
        (line,) = [line for line in map(json.loads, server.lines) if line["level"] == "error"]
    assert (line["package"], line["worker"], line["request_id"]) == ("results", 0, "job-2")
    assert line["message"] == "request job-2: the script failed on this request"
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("RuntimeError: secret detail")


def test_json_lines_of_a_batch_that_failed(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import time\n\ndef predict_batch(items):\n    time.sleep(0.2)\n"
        "    return [1 // (len(items) == 1) for _ in items]\n"
    )
    with serving(tmp_path, "--log-format", "json") as server, ThreadPoolExecutor(8) as people:
        list(people.map(server.predict, [1] * 8))
        server.wait_log("was run item by item")
        server.stop()
        lines = [line for line in map(json.loads, server.lines) if "item by item" in line["message"]]
    assert all("\n" not in line["message"] for line in lines)
    assert any("ZeroDivisionError" in line.get("traceback", "") for line in lines), lines


def test_the_access_log_is_off_by_default_and_sampled_by_flag() -> None:
    with serving("function") as server:
        for _ in range(20):
            server.predict(1)
    assert "POST /predict" not in server.log
    with serving("function", "--access-log", "0.1") as server:
        for _ in range(50):
            server.predict(1)
        wait_until(lambda: server.log.count("POST /predict 200") == 5)


def test_the_access_log_tells_the_method(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(GOT)
    with serving(tmp_path, "--access-log", "1") as server:
        assert [server.client.get("/now").status_code for _ in range(3)] == [200] * 3
        assert server.client.put("/now").status_code == 200
        wait_until(lambda: (server.log.count("GET /now 200"), server.log.count("PUT /now 200")) == (3, 1))


def test_dev_shows_the_error_in_a_header() -> None:
    with serving("results", "--dev") as server:
        answer = server.predict({"kind": "raise"})
        assert answer.headers["x-panglot-error"] == "RuntimeError: secret detail"
    with serving("results") as server:
        assert "x-panglot-error" not in server.predict({"kind": "raise"}).headers


def test_traceparent_reaches_the_script(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import panglot\n\ndef predict(item):\n    return [[one.id, one.traceparent] for one in panglot.requests()]\n"
    )
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with serving(tmp_path) as server:
        answer = server.predict(1, headers={"traceparent": trace, "x-request-id": "mine"})
        assert answer.json() == [["mine", trace]]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A stand-in for an OpenTelemetry collector: keeps what it is sent."""
    received: list[bytes] = []

    class Keep(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Keep)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()


def resources_of(received: list[bytes]) -> list[Any]:
    """What the collector has got, by the resources that sent it."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return [resource for body in received for resource in ExportTraceServiceRequest.FromString(body).resource_spans]


def spans_of(received: list[bytes]) -> list[Any]:
    return [span for resource in resources_of(received) for scope in resource.scope_spans for span in scope.spans]


def test_spans_of_queue_and_stages_are_exported(collector: tuple[str, list[bytes]]) -> None:
    url, received = collector
    trace = "0af7651916cd43dd8448eb211c80319c"
    with serving("stages", "--otel-endpoint", url) as server:
        server.predict({"value": 1}, headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
        wait_until(lambda: received, 15)
        server.stop()
    spans = spans_of(received)
    names = {span.name for span in spans}
    assert {"POST /predict", "queue", "decode", "inference", "encode"} <= names
    root = next(span for span in spans if span.name == "POST /predict")
    assert root.trace_id.hex() == trace
    assert root.parent_span_id.hex() == "b7ad6b7169203331"
    assert all(span.parent_span_id == root.span_id for span in spans if span is not root)


def test_spans_tell_the_method(collector: tuple[str, list[bytes]], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(GOT)
    url, received = collector
    with serving(tmp_path, "--otel-endpoint", url) as server:
        for _ in range(2):
            assert server.client.get("/now").status_code == 200
        server.stop()
    roots = [span for span in spans_of(received) if not span.name.islower()]
    assert [span.name for span in roots] == ["GET /now"] * 2
    methods = [item.value.string_value for span in roots for item in span.attributes if "method" in item.key]
    assert methods == ["GET"] * 2


def test_spans_tell_the_front(collector: tuple[str, list[bytes]]) -> None:
    url, received = collector
    with serving("function", "--otel-endpoint", url, "--fronts", "2") as server:
        fronts = pids(server)
        for front in fronts:
            assert client_of(server, front).post("/predict", json=1).status_code == 200
        server.stop()
    told: dict[str, str] = {}
    for resource in resources_of(received):
        about = {item.key: item.value.string_value for item in resource.resource.attributes}
        told[about["service.instance.id"].rpartition(":")[2]] = about["panglot.front"]
    assert told == {str(pid): str(index) for index, pid in fronts.items()}


WITHOUT_OTEL = """
import sys
sys.modules["opentelemetry"] = None
from panglot.cli import main
main()
"""


def test_tracing_without_its_extra_says_what_to_install() -> None:
    arguments = ["serve", str(PACKAGES / "function"), "--port", "0", "--otel-endpoint", "http://127.0.0.1:1"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OTEL, *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 3
    assert "pip install 'panglot[otel]'" in done.stderr


def test_levels_are_obeyed() -> None:
    done = panglot("serve", "tests/packages/broken/load_fails", "--log-level", "error", "--port", "0")
    assert "listening" not in done.stderr
