"""Every frame that enters a graph with Reorder is answered, in order, or named in an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.graph_command import Command
from support.server import Server, serving
from support.streams import ended, events, messages, start
from support.videos import make

FRAMES = 57
GRAPH = """
main = "videos"
nodes = [
    { name = "work", ty = "Work", cloned = 3 },
    { name = "shared_order", ty = "Reorder" },
]
[[graphs]]
name = "one"
inputs = [{ name = "frames", cap = 4, ports = ["work:inp"] }]
outputs = [{ name = "told", cap = 4, ports = ["tell:out"] }]
connections = [
    { cap = 4, ports = ["work:out", "ORDER:inp"] },
    { cap = 4, ports = ["ORDER:out", "tell:inp"] },
]
nodes = [{ name = "order", ty = "Reorder" }, { name = "tell", ty = "Tell" }]
[[graphs]]
name = "videos"
connections = [
    { cap = 4, ports = ["source:out", "each:frames"] },
    { cap = 4, ports = ["each:told", "source:inp"] },
]
nodes = [{ name = "source", SOURCE }, { name = "each", ty = "one" }]
"""
NODES = """
import json, time
from megflow import Envelope, register

@register(inputs=["inp"], outputs=["out"])
class Work:
    '''Three of it overtake each other. Some frames it fails on, some it answers in a new envelope, some not at all.'''
    def __init__(self, name, args):
        pass
    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        number = envelope.partial_id
        time.sleep(0.004 * (number * 7 % 5))
        if number in FAILS:
            raise ValueError("frame %d" % number)
        if number not in SILENT:
            self.out.send(envelope.repack(number))

@register(inputs=["inp"], outputs=["out"])
class Tell:
    def __init__(self, name, args):
        pass
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            # By its number alone, as nodes do that know no repack.
            told = Envelope.pack(json.dumps({"frame": envelope.msg}), info={"partial_id": envelope.partial_id})
            self.out.send(told)
"""


def package(folder: Path, *, order: str = "order", fails: tuple[int, ...] = (), silent: tuple[int, ...] = (),
            source: str = 'ty = "VideoServer", port = 8086') -> Path:  # fmt: skip
    folder.mkdir()
    graph = GRAPH.replace("ORDER", order).replace("SOURCE", source)
    if order == "order":
        graph = graph.replace('    { name = "shared_order", ty = "Reorder" },\n', "")
    else:
        graph = graph.replace('{ name = "order", ty = "Reorder" }, ', "")
    (folder / f"{folder.name}.toml").write_text(graph)
    (folder / "nodes.py").write_text(NODES.replace("FAILS", repr(fails)).replace("SILENT", repr(silent)))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("videos")
    make(found / "clip.mp4", FRAMES)
    make(found / "short.mp4", 20)
    return found


@pytest.fixture(scope="module", params=["order", "shared_order"])
def well(request: Any, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = package(tmp_path_factory.mktemp("well") / request.param, order=request.param)
    with serving(folder, "--uri-root", str(place)) as server:
        yield server


def frames(server: Server, stream: int) -> list[int]:
    return [one["frame"] for one in messages(server, stream)]


def test_every_frame_is_answered_in_order(well: Server) -> None:
    several = {start(well, name): count for name, count in (("clip.mp4", FRAMES), ("short.mp4", 20), ("short.mp4", 20))}
    for stream, count in several.items():
        about = ended(well, stream)
        assert (about["state"], about["error"]) == ("finished", "")
        assert frames(well, stream) == list(range(count))
        assert (about["decoded"], about["analysed"], about["results"], about["lost"]) == (count, count, count, 0)


@pytest.mark.parametrize("every", [2, 7])
def test_frames_that_are_left_out_hold_up_nothing(well: Server, every: int) -> None:
    stream = start(well, "clip.mp4", f"?every={every}")
    seen = []
    with events(well, stream) as told:
        for event in told:
            if not event.name:
                seen.append(event.data["frame"])
            if len(seen) == 4:
                break
    about = ended(well, stream)
    expected = list(range(0, FRAMES, every))
    assert seen == expected[:4]
    assert frames(well, stream) == expected
    assert about["analysed"] == len(expected)


@pytest.mark.parametrize("order", ["order", "shared_order"])
def test_frames_without_an_answer_are_named(place: Path, tmp_path: Path, order: str) -> None:
    fails, silent = (4, 11, 30), (6, 7)
    folder = package(tmp_path / "ill", order=order, fails=fails, silent=silent)
    answered = [number for number in range(FRAMES) if number not in fails + silent]
    with serving(folder, "--uri-root", str(place)) as server:
        stream = start(server, "clip.mp4")
        with events(server, stream) as told:
            found = list(told)
        assert [event.data["frame"] for event in found if not event.name] == answered
        lost = {event.data["frame"]: event.data["error"] for event in found if event.name == "lost"}
        assert lost.keys() == set(fails)
        assert all("node 'work#" in error for error in lost.values())
        about = ended(server, stream)
        assert about["state"] == "finished"
        assert "3 frames (" in about["error"]
        assert all(str(number) in about["error"] for number in fails)
        assert (about["analysed"], about["unanswered"], about["lost"]) == (FRAMES - 3, 2, 3)
        server.wait_log(r"stream 0 \(.*clip.mp4\): 3 frames \(.*\) got no answer: node 'work#\d' failed")

        body = (place / "clip.mp4").read_bytes()
        answer = server.client.post("/analyze_video", content=body, headers={"accept": "application/x-ndjson"})
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["frame"] for line in lines if "frame" in line] == answered
        assert {line["lost"]["frame"] for line in lines if "lost" in line} == set(fails)
        assert lines[-1]["end"]["lost"] == 3


def test_without_a_server_they_are_named_in_the_output(place: Path, tmp_path: Path) -> None:
    source = f'ty = "VideoInput", urls = ["{place / "short.mp4"}"], repeat = 1'
    package(tmp_path / "app", fails=(4, 11), source=source)
    with Command("-p", "app", cwd=tmp_path) as command:
        assert command.end() == 1
    assert "short.mp4: 2 frames (" in command.text
    assert "got no answer: node 'work#" in command.text
