"""Seeing a graph: inspect, SVG, the debug websocket, /docs in a browser, and a generated client."""

from __future__ import annotations

import base64
import importlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from support.browser import browsing
from support.graph_command import Command
from support.server import PACKAGES, Server, panglot, serving

ANSWER = ".live-responses-table tr.response .response-col_"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("megflow_echo") as running:
        yield running


def picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (6, 4), (1, 2, 3)).save(out, "PNG")
    return out.getvalue()


def test_inspect_draws_the_graph() -> None:
    shown = panglot("inspect", str(PACKAGES / "megflow_echo")).stdout
    assert "out ──16──▶ destination:inp" in shown
    assert "source  ImageServer :8084" in shown
    assert "POST /analyze/" in shown


def test_inspect_as_json() -> None:
    facts = json.loads(panglot("inspect", "--json", str(PACKAGES / "megflow_echo")).stdout)
    assert facts["dialect"] == "megflow"
    assert facts["settings"]["port"]["value"] == 8084, "the port of the graph file"


def test_the_svg_needs_no_graphviz(tmp_path: Path) -> None:
    with Command(
        "-p", str(PACKAGES / "megflow_echo"), "-m", str(PACKAGES), "--port", "0", "--dump", cwd=tmp_path,
        env={"MEGFLOW_DUMP": str(tmp_path / "graph.svg")},
    ) as running:  # fmt: skip
        running.wait_log("is ready on")
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"source", "destination", "shape", "echo (main)"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 5  # four arrows and their head


# The debug websocket


class Socket:
    """The client's side, in a few lines."""

    def __init__(self, port: int, path: str = "/debugger", **headers: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = {"Host": f"127.0.0.1:{port}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key}
        text = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **headers}.items())
        self.socket.sendall(f"GET {path} HTTP/1.1\r\n{text}\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = self.file.readline().decode()
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def send(self, value: Any) -> None:
        body, mask = json.dumps(value).encode(), os.urandom(4)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))
        self.socket.sendall(struct.pack("!BBH", 0x81, 0x80 | 126, len(body)) + mask + masked)

    def receive(self) -> Any:
        _, size = self.file.read(2)
        if size == 126:
            (size,) = struct.unpack("!H", self.file.read(2))
        return json.loads(self.file.read(size))

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def test_the_debug_websocket(tmp_path: Path) -> None:
    arguments = ("-p", str(PACKAGES / "megflow_echo"), "-m", str(PACKAGES), "--port", "0", "--debug", "0")
    with Command(*arguments, cwd=tmp_path) as running:
        port = int(running.wait_log(r"debug websocket on ws://[\d.]+:(\d+)/debugger")[1])
        running.wait_log("is ready on")
        first = Socket(port)
        assert "101" in first.status
        hello = first.receive()
        assert (hello["event"], hello["features"]) == ("initialized", ["QPS"])
        assert 'main = "echo"' in hello["graph"]
        assert "503" in Socket(port).status, "one client at a time"
        assert "404" in Socket(port, "/other").status
        assert "403" in Socket(port, Origin="http://evil.example").status
        first.send({"ty": "request", "feature": "QPS", "seq_id": 7, "command": "start", "ratio": 1})
        found = first.receive()
        assert (found["ty"], found["success"], found["seq_id"], found["graph"]) == ("response", True, 7, "echo")
        shape = next(node for node in found["nodes"] if node["name"] == "destination/shape")
        assert shape == {"name": "destination/shape", "qps": {"inp": [0, 0.0], "out": [0, 0.0]}, "is_block": False}
        first.send({"ty": "request", "feature": "QPS", "seq_id": 8, "command": "stop"})
        while found["ty"] != "event":
            found = first.receive()
        assert (found["event"], found["seq_id"]) == ("stop", 8)
        first.close()


# /docs and clients made from the document


@pytest.mark.document("megflow.23")
def test_the_file_picker_of_the_docs_page(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "dot.png"
    file.write_bytes(picture())
    with browsing() as browser:
        browser.resize(1100, 1000)
        browser.open(server.url + "/docs")
        browser.click("#operations-inference-analyze .opblock-summary-control")
        browser.click(".try-out__btn")
        browser.run("document.querySelector('tr[data-param-name=extra_data] input').focus()")
        browser.call("Input.insertText", text="by browser")
        browser.choose_file(".body-param__file-input, .opblock-section-request-body input[type=file]", file)
        # The page takes in what was typed a little later, and does nothing before.
        click_until_answered = (
            f"(() => {{ const status = document.querySelector({ANSWER!r} + 'status');"
            "if (!status) document.querySelector('.execute')?.click(); return status?.innerText })()"
        )
        assert browser.wait(click_until_answered).startswith("200")
        shown = browser.run(f"document.querySelector({ANSWER!r} + 'description').innerText")
        assert '"by%20browser"' in shown
        assert all(url.startswith((server.url, "data:", "blob:")) for url in browser.requested)


@pytest.mark.document("megflow.27")
def test_a_generated_client_calls_the_server(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openapi.json").write_bytes(server.client.get("/openapi.json").content)
    program = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    done = subprocess.run(
        [*program, "--output-path", "graph_client"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    client = importlib.import_module("graph_client").Client(base_url=server.url)
    analyze = importlib.import_module("graph_client.api.inference.analyze")
    file = importlib.import_module("graph_client.types").File(payload=io.BytesIO(picture()))
    answer = analyze.sync_detailed("by client", client=client, body=file)
    assert answer.status_code == 200
    assert json.loads(answer.content)["extra"] == "by%20client"
    assert json.loads(answer.content)["shape"] == [4, 6, 3]
