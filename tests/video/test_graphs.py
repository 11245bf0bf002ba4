"""VideoInput, and where a server of videos may not run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from support.graph_command import Command
from support.server import PACKAGES, panglot, serving
from support.streams import begin, ended, messages, start
from support.videos import make

GRAPH = """
main = "videos"
[[graphs]]
name = "one"
inputs = [{{ name = "frames", cap = 4, ports = ["write:inp"] }}]
outputs = [{{ name = "told", cap = 4, ports = ["write:out"] }}]
nodes = [{{ name = "write", ty = "Write", path = "{out}" }}]
[[graphs]]
name = "videos"
connections = [
    {{ cap = 4, ports = ["input:out", "each:frames"] }},
    {{ cap = 4, ports = ["each:told", "input:inp"] }},
]
nodes = [
    {{ name = "input", ty = "VideoInput", urls = [{urls}], repeat = {repeat} }},
    {{ name = "each", ty = "one" }},
]
"""
WRITE = """
import json
from megflow import register

@register(inputs=["inp"], outputs=["out"])
class Write:
    def __init__(self, name, args):
        self.file = open(args["path"], "a")
    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            self.file.flush()
            return
        picture = envelope.msg["data"]
        read = sum(1 << bit for bit in range(12) if picture[4:12, bit * 16 + 4 : bit * 16 + 12].mean() > 125)
        self.file.write(json.dumps([envelope.from_addr, envelope.partial_id, read]) + "\\n")
        self.out.send(envelope)
"""


def test_video_input_plays_to_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    clips = [make(tmp_path / "a.mp4", 23), make(tmp_path / "b.mp4", 11)]
    urls = ", ".join(f'"{path}"' for path in (*clips, tmp_path / "none.mp4", "concat:x"))
    (folder / "app.toml").write_text(GRAPH.format(out=tmp_path / "out", urls=urls, repeat=2))
    (folder / "write.py").write_text(WRITE)
    with Command("-p", "app", cwd=tmp_path) as command:
        assert command.end() == 0, command.text
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    for stream, frames in ((1, 23), (2, 11), (3, 23), (4, 11)):
        assert [(number, read) for one, number, read in found if one == stream] == [(n, n) for n in range(frames)]
    assert len(found) == 2 * 34
    assert command.text.count("left out") == 4
    assert "none.mp4: there is no such file" in command.text


def test_clients_name_files_below_a_root_only(tmp_path: Path) -> None:
    root = tmp_path / "videos"
    root.mkdir()
    make(root / "a.mp4", 5)
    outside = make(tmp_path / "b.mp4", 5)
    with serving("megflow_video", "--host", "0.0.0.0", "--no-auth", "--uri-root", str(root)) as server:
        for path in ("a.mp4", root / "a.mp4"):
            stream = start(server, path)
            assert ended(server, stream)["state"] == "finished"
            assert len(messages(server, stream)) == 5
        for path in (outside, "../b.mp4", "/dev/video0"):
            assert begin(server, path).status_code == 400


def test_clients_name_cameras_only_where_that_was_said() -> None:
    """Also on loopback: a proxy there makes everybody come from this machine."""
    with serving("megflow_video") as server:
        refused = begin(server, "/dev/video99")
        assert refused.status_code == 400
        assert "--cameras" in refused.text
    with serving("megflow_video", "--cameras") as server:
        assert "the camera cannot be opened" in begin(server, "/dev/video99").text


def test_streams_belong_to_one_worker() -> None:
    done = panglot("serve", str(PACKAGES / "megflow_video"), "--port", "0", "--workers", "2")
    assert done.returncode == 3
    assert "streams belong to one worker" in done.stderr
    assert "leave out --workers" in done.stderr


def test_bad_arguments_of_the_node(tmp_path: Path) -> None:
    folder = tmp_path / "video"
    shutil.copytree(PACKAGES / "megflow_video", folder)
    graph = folder / "megflow_video.toml"
    graph.write_text(graph.read_text().replace("port = 8086", 'port = 8086, drop = "newest"'))
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert "drop is 'oldest' or 'block', not 'newest'" in done.stderr


def test_every_route_needs_the_token(tmp_path: Path) -> None:
    with serving("megflow_video", env={"PANGLOT_TOKEN": "s3cret"}) as server:
        for path in ("/list", "/get_msgs/0", "/events/0", "/preview/0.jpg", "/preview/0.mjpeg"):
            assert server.client.get(path).status_code == 401
        for path in ("/start/x", "/stop/0"):
            assert server.client.post(path).status_code == 401
        given = {"authorization": "Bearer s3cret"}
        assert server.client.get("/list", headers=given).json() == []


def test_a_new_package_works_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "balls"
    assert "/start/clip.mp4" in panglot("new", "megflow", str(folder), "--kind", "video").stdout
    with serving(folder) as server:
        server.wait_log(f"curl -X POST {server.url}/start/clip.mp4")
        stream = start(server, "clip.mp4")
        assert ended(server, stream)["state"] == "finished"
        found = messages(server, stream)
        assert [one["frame"] for one in found] == list(range(75))
        assert all(one["box"] and 1 <= one["moved"] <= 6 for one in found[1:])
