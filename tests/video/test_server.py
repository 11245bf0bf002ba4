"""VideoServer: streams of files, and what their clients get."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from support.descent import children
from support.server import Server, serving, wait_until
from support.streams import LONG, begin, ended, events, listed, messages, start
from support.videos import make

FRAMES = 57


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clips") / "clip with space.mp4", FRAMES)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder whose files may be named: that of all clips."""
    return str(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough not to end while a test looks."""
    return make(tmp_path_factory.mktemp("clips") / "long.mp4", 3000, options={"preset": "ultrafast"})


@pytest.fixture(scope="module")
def server(root: str) -> Iterator[Server]:
    with serving("megflow_video", "--uri-root", root, "--stream-results", "100") as running:
        yield running


@pytest.fixture(scope="module")
def unhurried(root: str) -> Iterator[Server]:
    with serving("megflow_video", "--uri-root", root, "--max-streams", "3", env={"TEST_PAUSE": "0.02"}) as running:
        yield running


@pytest.fixture
def slow(unhurried: Server) -> Iterator[Server]:
    """Its graph takes 20 ms for a frame; three streams at once, none of them left by another test."""
    yield unhurried
    for one in unhurried.client.get("/list").json():
        unhurried.client.post(f"/stop/{one['id']}")
    wait_until(lambda: not decoders(unhurried))


@pytest.mark.document("megflow.02")
def test_every_frame_has_its_result_in_order(server: Server, clip: Path) -> None:
    stream = start(server, clip)
    about = ended(server, stream)
    assert (about["state"], about["decoded"], about["analysed"], about["results"]) == ("finished", FRAMES, FRAMES, 57)
    assert about["url"] == str(clip)
    found = messages(server, stream)
    assert [one["frame"] for one in found] == list(range(FRAMES))
    assert [one["read"] for one in found] == list(range(FRAMES))
    assert {one["stream"] for one in found} == {stream}
    assert found[0]["shape"] == [48, 208, 3]
    assert messages(server, stream) == []


def test_two_streams_at_once_have_nodes_of_their_own(server: Server, clip: Path) -> None:
    streams = [start(server, clip) for _ in range(2)]
    for stream in streams:
        ended(server, stream)
        found = messages(server, stream)
        assert [one["read"] for one in found] == list(range(FRAMES))
        assert [one["seen"] for one in found] == list(range(FRAMES)), "the node that counts is not shared"
        assert {one["stream"] for one in found} == {stream}


def test_events_one_per_result_and_resumable(server: Server, clip: Path) -> None:
    stream = start(server, clip)
    with events(server, stream) as found:
        every = list(found)
    assert [one.data["frame"] for one in every[:-1]] == list(range(FRAMES))
    assert [one.id for one in every[:-1]] == [str(number + 1) for number in range(FRAMES)]
    assert every[1].data["seconds"] == pytest.approx(0.04, abs=1e-3)
    assert (every[-1].name, every[-1].data["state"]) == ("end", "finished")
    with events(server, stream, after=50) as found:
        assert [one.id for one in found if one.id] == [str(number) for number in range(51, FRAMES + 1)]


def test_results_nobody_fetches_are_bounded_and_counted(server: Server, endless: Path) -> None:
    stream = start(server, endless, "?every=10")
    about = ended(server, stream)
    assert (about["results"], about["results_dropped"]) == (300, 200)
    with events(server, stream, after=20) as found:
        every = list(found)
    assert (every[0].name, every[0].data) == ("dropped", {"results": 180})
    assert every[1].id == "201"
    assert [one["frame"] for one in messages(server, stream)] == list(range(2000, 3000, 10))


def test_sampling(server: Server, clip: Path) -> None:
    for query, frames in (("?every=10", range(0, FRAMES, 10)), ("?fps=5", range(0, FRAMES, 5))):
        stream = start(server, clip, query)
        about = ended(server, stream)
        found = messages(server, stream)
        assert [one["frame"] for one in found] == list(frames), "numbers are those of the video"
        assert [one["read"] for one in found] == list(frames)
        assert (about["decoded"], about["analysed"]) == (FRAMES, len(frames))


@pytest.mark.parametrize(
    ("query", "words"),
    [("?fps=x", "fps must be a number"), ("?every=0.5", "every a whole number"), ("?every=0", "every is 1 or more"),
     ("?fps=-1", "fps above 0"), ("?fps=nan", "fps above 0"), ("?drop=all", "'oldest' or 'block'"),
     ("?speed=2", "'speed' is not known")],
)  # fmt: skip
def test_wishes_that_make_no_sense(server: Server, clip: Path, query: str, words: str) -> None:
    answer = begin(server, clip, query)
    assert (answer.status_code, words in answer.text) == (400, True), answer.text


def test_stop_really_stops(slow: Server, endless: Path) -> None:
    stream = start(slow, endless)
    with events(slow, stream) as found:
        next(found)
        answer = slow.client.post(f"/stop/{stream}")
        assert answer.text == f"stop stream {stream} success"
        last = list(found)[-1]
    assert (last.name, last.data["state"]) == ("end", "stopped")
    assert last.data["analysed"] < 200
    assert listed(slow, stream) == {}
    assert slow.client.post(f"/stop/{stream}").status_code == 404
    taken = messages(slow, stream)
    assert 0 < len(taken) < 200, "results can be fetched after the stop"
    assert messages(slow, stream) == []
    wait_until(lambda: not decoders(slow))


def decoders(server: Server) -> list[int]:
    return [child.pid for worker in server.workers() for child in children(worker)]


def test_unknown_streams(server: Server) -> None:
    client = server.client
    for word in ("9999", "-1", "x", "1.5", "%30", "00000000000000000000000000"):
        assert client.get(f"/get_msgs/{word}").status_code == 404
        assert client.get(f"/events/{word}").status_code == 404
        assert client.get(f"/preview/{word}.jpg").status_code == 404
        assert client.post(f"/stop/{word}").status_code == 404
    assert client.get("/preview/0.png").status_code == 404


def test_methods(server: Server) -> None:
    assert server.client.post("/list").status_code == 405
    assert server.client.post("/list").headers["allow"] == "GET"
    assert server.client.get("/start/x").headers["allow"] == "POST"
    assert server.client.get("/elsewhere").status_code == 404


def test_what_cannot_be_opened(server: Server, tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    for path in (tmp_path / "text.mp4", tmp_path / "empty.mp4"):
        answer = begin(server, path)
        assert (answer.status_code, answer.text) == (
            500,
            "the video cannot be opened: it is not a video in a known format",
        )
    for path in (tmp_path / "none.mp4", tmp_path, "/dev/zero", "relative.mp4", "a\0b"):
        answer = begin(server, path)
        assert (answer.status_code, answer.text) == (400, "the video is not opened: there is no such file")
    wait_until(lambda: not decoders(server))


def test_no_more_streams_than_allowed(slow: Server, endless: Path) -> None:
    streams = [start(slow, endless) for _ in range(3)]
    answer = begin(slow, endless)
    assert answer.status_code == 503
    assert "stop one first" in answer.text
    for stream in streams:
        slow.client.post(f"/stop/{stream}")
    # A stream counts until its graph has ended, which may be later than its decoder; then it is no longer listed.
    wait_until(lambda: not decoders(slow) and not any(listed(slow, stream) for stream in streams))
    slow.client.post(f"/stop/{start(slow, endless)}")


def test_drop_oldest_loses_frames_and_block_does_not(slow: Server, endless: Path) -> None:
    for drop in ("oldest", "block"):
        stream = start(slow, endless, f"?drop={drop}")
        with events(slow, stream) as found:
            frames = [one.data["frame"] for _, one in zip(range(30), found, strict=False) if one.id]
        about = listed(slow, stream)
        slow.client.post(f"/stop/{stream}")
        assert frames == sorted(set(frames))
        if drop == "block":
            assert (frames, about["dropped"]) == (list(range(30)), 0)
        else:
            assert about["dropped"] > 100


def is_drawn(picture: bytes) -> bool:
    frame = np.asarray(Image.open(io.BytesIO(picture)))
    assert frame.shape == (48, 208, 3)
    red, _, blue = frame[36:44].reshape(-1, 3).mean(axis=0)
    return bool(red > 200 and blue < 60)


def test_pictures_of_the_last_frame_with_what_was_drawn(slow: Server, endless: Path) -> None:
    stream = start(slow, endless)
    wait_until(lambda: slow.client.get(f"/preview/{stream}.jpg").status_code == 200)
    pictures: list[bytes] = []
    with slow.client.stream("GET", f"/preview/{stream}.mjpeg", timeout=LONG) as answer:
        assert answer.headers["content-type"] == "multipart/x-mixed-replace; boundary=frame"
        whole = b""
        for data in answer.iter_bytes():
            whole += data
            pictures = [part.partition(b"\r\n\r\n")[2] for part in whole.split(b"--frame\r\n")[1:-1]]
            # The first pictures are of frames that were on their way before anybody looked.
            if (len(set(pictures)) > 3 and is_drawn(pictures[-1])) or len(pictures) > 300:
                break
    assert len(set(pictures)) > 1, "it moves"
    assert is_drawn(pictures[-1])
    slow.client.post(f"/stop/{stream}")


def test_figures_of_streams_on_metrics(slow: Server, endless: Path) -> None:
    stream = str(start(slow, endless))

    def count(stage: str) -> float:
        return slow.metric("panglot_stream_frames_total", stream=stream, stage=stage)

    wait_until(lambda: count("decoded") >= count("analysed") > 5, LONG)
    wait_until(lambda: slow.metric("panglot_stream_lag_seconds", stream=stream) > 0, LONG)
    slow.client.post(f"/stop/{stream}")
    wait_until(lambda: not count("decoded"), LONG, lambda: "its series stays")


def test_a_decoder_that_dies_costs_its_stream_only(slow: Server, endless: Path) -> None:
    import psutil

    other = start(slow, endless)
    before = set(decoders(slow))
    stream = start(slow, endless)
    (victim,) = set(decoders(slow)) - before
    psutil.Process(victim).kill()
    about = ended(slow, stream)
    assert (about["state"], about["error"]) == ("failed", "the decoder ended: SIGKILL")
    with events(slow, other) as found:
        assert next(found)
    assert listed(slow, other)["state"] == "running"
    slow.client.post(f"/stop/{other}")


def test_a_client_that_leaves_its_events_is_forgotten(slow: Server, endless: Path) -> None:
    stream = start(slow, endless)
    for _ in range(5):
        with events(slow, stream) as found:
            next(found)
    wait_until(lambda: slow.metric("panglot_requests_in_progress") == 0, LONG)
    slow.client.post(f"/stop/{stream}")


def test_a_server_with_listeners_stops_at_once(endless: Path) -> None:
    with serving("megflow_video", "--uri-root", str(endless.parent), env={"TEST_PAUSE": "0.05"}) as server:
        stream = start(server, endless)
        ends: list[bool] = []

        def listen() -> None:
            with (
                httpx.Client(base_url=server.url, timeout=60) as client,
                client.stream("GET", f"/events/{stream}") as answer,
            ):
                for _ in answer.iter_raw():
                    pass
            ends.append(True)

        listener = threading.Thread(target=listen)
        listener.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress") > 0)
        assert server.stop(seconds=20) == 0
        listener.join(10)
        assert ends, "the events end properly"


def test_the_document_tells_of_all_routes(server: Server) -> None:
    paths = server.client.get("/openapi.json").json()["paths"]
    assert {"/start/{url}", "/stop/{id}", "/list", "/get_msgs/{id}", "/events/{id}", "/preview/{picture}"} <= set(paths)
    assert "requestBody" not in paths["/start/{url}"]["post"]
    assert list(paths["/list"]) == ["get"]


def test_the_page_has_what_the_streams_show(slow: Server, endless: Path) -> None:
    page = slow.client.get("/videos")
    assert page.status_code == 200
    assert "<html" in page.text
    stream = start(slow, endless)
    wait_until(lambda: slow.client.get(f"/preview/{stream}.jpg").status_code == 200, LONG)
    assert str(endless) in slow.client.get("/list").text
