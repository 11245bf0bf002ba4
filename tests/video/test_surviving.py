"""Streams survive a restart of their worker: those of files go on at their frame, live ones are opened again."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.live import LIVE, STALL, LiveServer, pieces
from support.server import PACKAGES, Server, lives, serving, wait_until
from support.streams import LONG, Event, ended, events, listed, messages, start
from support.videos import made, make

FRAMES = 120


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clips") / "clip.mp4", FRAMES)


@pytest.fixture(scope="module")
def server(clip: Path) -> Iterator[Server]:
    flags = ("--uri-root", str(clip.parent), "--url-allow", "127.0.0.1", "--restart-delay", "0.1")
    with serving("megflow_video", *flags, env={"TEST_PAUSE": "0.02"}) as running:
        yield running


def kill_worker(server: Server) -> None:
    (worker,) = server.workers()
    worker.send_signal(signal.SIGKILL)
    wait_until(lambda: worker.pid not in [one.pid for one in server.workers()], LONG)


def taken(server: Server, stream: int, count: int, after: int | None = None, kill: bool = False) -> list[Event]:
    """So many events of a stream, or all there are when they end before. `kill`: then kill its worker, and take what
    still comes."""
    found: list[Event] = []
    with events(server, stream, after) as coming:
        found.extend(itertools.islice(coming, count))
        if kill:
            kill_worker(server)
            with contextlib.suppress(httpx.RemoteProtocolError):
                found.extend(coming)
    return found


def gap_in(seen: list[Event]) -> int:
    """Where the one gap is. No number comes twice, and what is missing is told."""
    (place,) = (place for place, one in enumerate(seen) if one.name == "gap")
    numbers = [int(one.id) for one in seen if one.id]
    assert numbers == sorted(set(numbers))
    return place


def missing(seen: list[Event]) -> int:
    return sum(one.data["results"] for one in seen if one.name == "dropped")


def test_a_file_goes_on_at_its_frame_after_a_crash(server: Server, clip: Path) -> None:
    """Every frame has one result; a listener that comes back gets none twice, and is told if one was never sent."""
    stream = start(server, clip)
    seen = taken(server, stream, 30, kill=True)
    assert seen[-1].name != "end"
    seen += taken(server, stream, 1000, int(seen[-1].id))
    place = gap_in(seen)
    gap = seen[place]
    assert gap.data["reason"] == "its worker died"
    assert (gap.data["lost"], gap.data["seconds"] > 0) == (0, True)
    frames = [one.data["frame"] for one in seen if not one.name]
    assert frames == sorted(set(frames))
    assert len(frames) + missing(seen) == FRAMES
    assert missing(seen) <= 1
    behind = [one.data["frame"] for one in seen[place + 1 :] if not one.name]
    assert behind[0] == gap.data["frame"] > 0
    assert (seen[-1].name, seen[-1].data["state"]) == ("end", "finished")
    about = listed(server, stream)
    assert (about["restarts"], about["analysed"], about["results"], about["lost"]) == (1, FRAMES, FRAMES, 0)
    server.wait_log(rf"stream {stream} \(.*clip.mp4\) goes on at frame {gap.data['frame']}: its worker died")


def test_sampling_stays_as_it_was(server: Server, clip: Path) -> None:
    # Of the clip it would take no more than 18 frames, and could be over before its worker is killed.
    long = make(clip.parent / "long.mp4", 7 * FRAMES + 1, options={"preset": "ultrafast"})
    stream = start(server, long, "?every=7")
    wait_until(lambda: listed(server, stream)["analysed"] > 3, LONG)
    found = messages(server, stream)
    kill_worker(server)
    ended(server, stream)
    frames = [one["frame"] for one in found + messages(server, stream)]
    assert frames == sorted(set(frames)), "none twice"
    assert not [frame for frame in frames if frame % 7]
    assert frames[-1] == 7 * FRAMES, frames


def test_what_was_stopped_or_is_over_stays_so_and_numbers_are_new(server: Server, clip: Path) -> None:
    over = start(server, clip, "?every=100")
    ended(server, over)
    stopped = start(server, clip)
    server.client.post(f"/stop/{stopped}")
    kill_worker(server)
    assert server.client.get("/list").json() == []
    fresh = start(server, clip)
    assert fresh == stopped + 1
    server.client.post(f"/stop/{fresh}")


def test_a_live_source_is_opened_again(server: Server) -> None:
    piece = made(40)
    with LiveServer(lambda number, path, head: [LIVE, *pieces(piece, 20, 0.05), STALL]) as web:
        stream = start(server, web.url())
        seen = taken(server, stream, 10, kill=True)
        seen += taken(server, stream, 25, int(seen[-1].id))
        assert web.connections == 2
        about = listed(server, stream)
        assert (about["state"], about["restarts"], about["reconnects"]) == ("running", 1, 1)
        server.client.post(f"/stop/{stream}")
    place = gap_in(seen)
    gap = seen[place]
    before = [one.data["frame"] for one in seen[:place] if not one.name]
    behind = [one.data["frame"] for one in seen[place + 1 :] if not one.name]
    assert before == list(range(len(before)))
    assert behind == list(range(gap.data["frame"], gap.data["frame"] + len(behind))), "numbers go on"
    assert behind[0] > before[-1]


def test_a_file_that_is_gone_has_failed(server: Server, clip: Path) -> None:
    copy = Path(shutil.copy(clip, clip.parent / "copy.mp4"))
    stream = start(server, copy)
    copy.unlink()
    kill_worker(server)
    about = ended(server, stream)
    assert (about["state"], about["error"]) == ("failed", "there is no such file")


def test_reload_hands_streams_over(clip: Path, tmp_path: Path) -> None:
    """The new worker goes on with them; who listens is sent there, and an upload is analysed to its end by the old."""
    package = tmp_path / "megflow_video"
    shutil.copytree(PACKAGES / "megflow_video", package)
    flags = ("--uri-root", str(clip.parent), "--reload")
    with serving(package, *flags, env={"TEST_PAUSE": "0.06"}) as server:
        stream = start(server, clip)
        (old,) = server.workers()
        body = clip.read_bytes()
        with server.client.stream("POST", "/analyze_video", content=body, timeout=LONG) as upload:
            lines = upload.iter_lines()
            assert upload.status_code == 200
            with events(server, stream) as coming:
                seen = list(itertools.islice(coming, 5))
                script = next(package.glob("*.py"))
                text = script.read_text() + "\n# changed\n"
                server.change(lambda: script.write_text(text))
                seen += list(coming)
            assert seen[-1].name != "end"
            assert server.client.get("/list").json()[0]["id"] == stream
            seen += taken(server, stream, 1000, int(seen[-1].id))
            assert sum(line.startswith("id: ") for line in lines) == FRAMES
        wait_until(lambda: not lives(old), LONG)
    assert [one.data["frame"] for one in seen if not one.name] == list(range(FRAMES))
    assert seen[gap_in(seen)].data["reason"] == "its worker was replaced"
    assert seen[-1].name == "end"


KILLER = """
import os
import time
from megflow import register

@register(inputs=["inp"], outputs=["out"])
class Kills:
    def __init__(self, name, args):
        self.args = args
        if os.path.exists(args["init"]):
            os._exit(8)

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        time.sleep(self.args["pause"])
        if envelope.partial_id in self.args["frames"] or not self.args["frames"]:
            os._exit(7)
        self.out.send(envelope.repack(str(envelope.partial_id)))
"""
GRAPH = """
main = "videos"
[[graphs]]
name = "one"
inputs = [{ name = "frames", cap = 1, ports = ["kills:inp"] }]
outputs = [{ name = "told", cap = 1, ports = ["kills:out"] }]
nodes = [{ name = "kills", ty = "Kills", frames = FRAMES, init = "INIT", pause = PAUSE }]
[[graphs]]
name = "videos"
connections = [
    { cap = 1, ports = ["server:out", "each:frames"] },
    { cap = 1, ports = ["each:told", "server:inp"] },
]
nodes = [{ name = "server", ty = "VideoServer", port = 8086 }, { name = "each", ty = "one" }]
"""


def killer(folder: Path, frames: list[int], pause: float = 0.0) -> Path:
    """A package whose node ends the worker on these frames, on all if none is named, and where the file `init` is."""
    folder.mkdir()
    (folder / "kills.py").write_text(KILLER)
    graph = GRAPH.replace("FRAMES", str(frames)).replace("INIT", str(folder / "init")).replace("PAUSE", str(pause))
    (folder / f"{folder.name}.toml").write_text(graph)
    return folder


def test_frames_that_kill_twice_are_left_out(clip: Path, tmp_path: Path) -> None:
    package = killer(tmp_path / "killer", [60])
    with serving(package, "--uri-root", str(clip.parent), "--restart-delay", "0.1") as server:
        stream = start(server, clip)
        about = ended(server, stream)
        assert (about["state"], about["restarts"]) == ("finished", 2)
        assert 1 <= about["lost"] <= 4
        assert about["analysed"] == FRAMES - about["lost"]
        assert about["error"] == f"{about['lost']} frames got no answer: the worker ended"


def test_a_video_that_kills_every_worker_is_given_up(clip: Path, tmp_path: Path) -> None:
    package = killer(tmp_path / "killer", [])
    flags = ("--uri-root", str(clip.parent), "--restart-delay", "0.1", "--stream-retries", "2")
    with serving(package, *flags) as server:
        answer = server.client.post(f"/start/{clip.name}")
        assert answer.status_code in (200, 500), "it may die before it is told that the stream began"
        if answer.status_code == 200:
            about = ended(server, int(answer.text.split()[-1]))
            assert (about["state"], about["error"]) == (
                "failed", "3 workers in a row died without one frame analysed"
            )  # fmt: skip
        deaths = server.log.count("exit code 7")
        assert server.client.get("/list").status_code == 200
        assert deaths <= 4


def test_a_subgraph_that_kills_every_worker_is_given_up(clip: Path, tmp_path: Path) -> None:
    """Also where no frame comes so far."""
    package = killer(tmp_path / "killer", [10**6], 0.1)
    flags = ("--uri-root", str(clip.parent), "--restart-delay", "0.1", "--stream-retries", "2")
    with serving(package, *flags) as server:
        stream = start(server, clip)
        (package / "init").touch()
        kill_worker(server)
        wait_until(lambda: "3 workers in a row died" in server.log, LONG, lambda: server.log)
        assert server.client.get("/list").json()[0]["id"] == stream
        assert ended(server, stream)["state"] == "failed"
        (package / "init").unlink()
        start(server, clip)
