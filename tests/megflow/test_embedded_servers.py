"""Server nodes of `megflow.Graph` in a program of one's own: they listen, by the standard library alone."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from PIL import Image

from support import interpreters
from support.pictures import saved
from support.server import PACKAGES, ROOT, panglot
from support.streams import parsed
from support.videos import make

PROGRAM = """
import json, sys
from megflow import Graph
graph = Graph(config_path=sys.argv[1], plugin_path=sys.argv[2], module_path=sys.argv[2])
try:
    print(json.dumps(graph.ports()), flush=True)
    graph.wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
PICTURE = """
main = "g"
[[graphs]]
name = "g"
connections = [{ cap = 4, ports = ["images:out", "tell:inp"] }, { cap = 4, ports = ["tell:out", "images:inp"] },
               { cap = 4, ports = ["octets:out", "turn:inp"] }, { cap = 4, ports = ["turn:out", "octets:inp"] }]
nodes = [{ name = "images", ty = "ImageServer", port = 0, response = "json" }, { name = "tell", ty = "Tell" },
         { name = "octets", ty = "BytesServer", port = 0 }, { name = "turn", ty = "Turn" }]
"""
NODES = """
import json
from megflow import register

class Base:
    def __init__(self, name, args):
        pass

@register(inputs=["inp"], outputs=["out"])
class Tell(Base):
    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        word = envelope.msg["extra_data"]
        if word == "raises":
            raise ValueError("no")
        if word != "loses":
            self.out.send(envelope.repack(json.dumps([word, list(envelope.msg["data"].shape)])))

@register(inputs=["inp"], outputs=["out"])
class Turn(Base):
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope.repack({"data": envelope.msg["data"][::-1].copy()}))
"""
IMAGE = {"content-type": "image/*"}


def picture(width: int = 8, height: int = 8) -> bytes:
    return saved(Image.new("RGB", (width, height), "red"), "JPEG")


class Program(NamedTuple):
    process: subprocess.Popen[str]
    ports: dict[str, int]

    def client(self, node: str) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.ports[node]}", timeout=20)


@contextlib.contextmanager
def running(graph: Path, plugins: Path, **more: str) -> Iterator[Program]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
    environment.update(PYTHONPATH=panglot("shims", "megflow").stdout.strip(), **more)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, graph, plugins], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        try:
            yield Program(process, json.loads(process.stdout.readline()))
        finally:
            process.kill()


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "nodes.py").write_text(NODES)
    (folder / "graph.toml").write_text(PICTURE)
    return folder


@pytest.fixture(scope="module")
def program(plugins: Path) -> Iterator[Program]:
    with running(plugins / "graph.toml", plugins) as found:
        yield found


def test_pictures_and_bytes(program: Program) -> None:
    with program.client("images") as images, program.client("octets") as octets:
        for word in ("a", "b%20c"):
            answer = images.post(f"/analyze/{word}", content=picture(40, 30), headers=IMAGE)
            assert (answer.status_code, answer.json()) == (200, [word, [30, 40, 3]])
            assert answer.headers["content-type"] == "application/json"
        answer = octets.post("/analyze/bytes", content=b"abc")
        assert (answer.status_code, answer.content) == (200, b"cba")


def test_what_goes_wrong_is_answered(program: Program) -> None:
    with program.client("images") as images:
        assert images.post("/analyze/raises", content=picture(), headers=IMAGE).status_code == 500
        lost = images.post("/analyze/loses", content=picture(), headers=IMAGE)
        assert (lost.status_code, "the graph lost this request" in lost.text) == (500, True)
        assert images.post("/analyze/x", content=b"none", headers=IMAGE).status_code == 500
        assert images.post("/analyze/", content=picture(), headers=IMAGE).status_code == 404
        assert images.post("/other", content=picture(), headers=IMAGE).status_code == 404
        assert images.get("/analyze/x").status_code == 405
        assert images.post("/analyze/x", content=iter([picture()]), headers=IMAGE).status_code == 411
        assert images.post("/analyze/ok", content=picture(), headers=IMAGE).status_code == 200


def test_a_body_that_is_too_large_is_not_waited_for(program: Program) -> None:
    asking = http.client.HTTPConnection("127.0.0.1", program.ports["images"], timeout=20)
    asking.putrequest("POST", "/analyze/x")
    asking.putheader("content-length", "99999999")
    asking.endheaders()
    assert asking.getresponse().status == 413
    asking.close()


def test_pages_of_other_sites_are_refused(program: Program) -> None:
    with program.client("images") as images:
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
            assert images.post("/analyze/x", content=picture(), headers={**IMAGE, **headers}).status_code == 403


def test_many_at_once(program: Program) -> None:
    answers: list[bool] = []

    def ask(number: int) -> None:
        with program.client("octets") as octets:
            for turn in range(10):
                body = b"%d %d" % (number, turn)
                answers.append(octets.post("/analyze/bytes", content=body).content == body[::-1])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 80


def test_an_interrupt_ends_it_and_a_taken_port_is_told(plugins: Path, tmp_path: Path) -> None:
    with running(plugins / "graph.toml", plugins) as program:
        program.process.send_signal(signal.SIGINT)
        assert program.process.stdout is not None
        assert program.process.stdout.read() == "interrupted\n"
        assert program.process.wait(20) == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "taken.toml").write_text(PICTURE.replace("port = 0, r", f"port = {port}, r"))
        environment = {**os.environ, "PYTHONPATH": panglot("shims", "megflow").stdout.strip()}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path / "taken.toml", plugins], env=environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert f"'images' cannot listen on port {port}" in done.stderr


def test_videos(tmp_path: Path) -> None:
    make(tmp_path / "clip.mp4", 30)
    package = PACKAGES / "megflow_video"
    graph = tmp_path / "video.toml"
    graph.write_text((package / "megflow_video.toml").read_text().replace("port = 8086", "port = 0"))
    with running(graph, package, PANGLOT_URI_ROOT=str(tmp_path)) as program, program.client("server") as client:
        assert client.post("/start/clip.mp4").text == "start stream whose id is 0"
        with client.stream("GET", "/events/0") as answer:
            events = list(itertools.takewhile(lambda one: one.name != "end", parsed(answer.iter_lines())))
        assert [one.data["frame"] for one in events] == list(range(30))
        assert client.get("/list").json()[0]["state"] == "finished"
        assert client.post("/start/%2Fetc%2Fpasswd").status_code == 400
        body = (tmp_path / "clip.mp4").read_bytes()
        answer = client.post("/analyze_video", content=body, headers={"accept": "application/x-ndjson"})
        assert len(answer.text.splitlines()) == 31
        # Somebody who listens does not keep it from ending.
        make(tmp_path / "long.mp4", 3000, options={"preset": "ultrafast"})
        client.post("/start/long.mp4?fps=1")
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(30) == 0


def test_the_small_front_needs_nothing_but_an_old_standard_library() -> None:
    python = interpreters.found().get("3.8")
    if python is None:
        pytest.skip("there is no CPython 3.8 here")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import panglot_worker.dialects.megflow.servers.small_front"
    done = subprocess.run([python, "-c", code, ROOT / "src"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
