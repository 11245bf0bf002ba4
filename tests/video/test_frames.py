"""From a source to numbered BGR arrays, without a server."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video import named_files, sources
from panglot_worker.video.decoder_process import LENT, DecoderProcess, Ended, Sampling, VideoFrame
from panglot_worker.video.history import Result, ResultHistory
from panglot_worker.video.limits import SourceRules, VideoLimits
from support.videos import made, make, number_of, numbered

RULES = SourceRules()


def play(path: Path) -> tuple[list[Any], str]:
    source = sources.find(str(path), RULES)
    decoder = DecoderProcess(source, Sampling(), VideoLimits(), RULES)
    frames = []
    try:
        while True:
            frame = decoder.next()
            if frame is not None:
                frames.append((frame.number, number_of(frame.array), frame.array.shape))
    except Ended as ended:
        return frames, ended.kind
    finally:
        decoder.close()
        source.close()


@pytest.mark.parametrize(
    ("format", "codec", "size"),
    [("mp4", "libx264", (208, 48)), ("matroska", "libx264", (213, 49)), ("mpegts", "libx264", (208, 48)),
     ("avi", "mpeg4", (208, 48)), ("webm", "libvpx", (210, 50)), ("h264", "libx264", (208, 48)),
     ("flv", "libx264", (208, 48)), ("mjpeg", "mjpeg", (214, 48))],
)  # fmt: skip
def test_formats_and_widths(tmp_path: Path, format: str, codec: str, size: tuple[int, int]) -> None:
    """None lost, none doubled, in order; the last frames, which codecs hold back, are there too."""
    frames, ending = play(make(tmp_path / "clip", 37, format, codec=codec, width=size[0], height=size[1]))
    assert [(number, read) for number, read, _ in frames] == [(n, n) for n in range(37)]
    assert {shape for _, _, shape in frames} == {(size[1], size[0], 3)}
    assert ending == ""


def test_blue_comes_first(tmp_path: Path) -> None:
    def blue(number: int, width: int, height: int) -> Any:
        return np.full((height, width, 3), (250, 60, 10), np.uint8)

    path = make(tmp_path / "blue.mp4", 2, picture=blue)
    source = sources.find(str(path), RULES)
    decoder = DecoderProcess(source, Sampling(), VideoLimits(), RULES)
    frame = next(frame for frame in iter(decoder.next, 0) if frame)
    assert frame.array.dtype == np.uint8
    assert frame.array.flags.c_contiguous
    assert frame.array.flags.writeable
    assert frame.array[20, 20] == pytest.approx([250, 60, 10], abs=6)
    decoder.close()
    source.close()


def test_a_frame_size_that_changes_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "two.ts"
    path.write_bytes(made(10) + made(10, width=320, height=100, first=10))
    frames, _ = play(path)
    assert [read for _, read, _ in frames] == list(range(20))
    assert {shape for _, _, shape in frames} == {(48, 208, 3), (100, 320, 3)}


def test_frames_somebody_keeps_stay_as_they_are(tmp_path: Path) -> None:
    source = sources.find(str(make(tmp_path / "a.mp4", 60)), RULES)
    decoder = DecoderProcess(source, Sampling(), VideoLimits(), RULES)
    kept: list[VideoFrame] = []
    with contextlib.suppress(Ended):
        while True:
            kept += filter(None, [decoder.next()])
    assert [number_of(frame.array) for frame in kept] == list(range(60))
    assert len(decoder._lent) == LENT
    kept.clear()
    gc.collect()
    assert not decoder._lent
    decoder.close()
    source.close()


def test_a_decoder_leaves_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", 5)
    play(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        play(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_numbers_in_frames_can_be_read() -> None:
    assert [number_of(numbered(n)) for n in (0, 1, 1000, 4095)] == [0, 1, 1000, 4095]


# Which files


def test_below_a_root_only(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.mp4"
    (root / "in").mkdir(parents=True)
    outside.write_bytes(b"x")
    inside = root / "in" / "a.mp4"
    inside.write_bytes(b"x")
    (root / "link.mp4").symlink_to(outside)
    (root / "away").symlink_to(tmp_path)
    os.link(outside, root / "hard.mp4")
    os.mkfifo(root / "pipe")
    rules = SourceRules(any_file=False, root=str(root), cameras=False)
    for path in ("in/a.mp4", str(inside)):
        os.close(named_files.open_file(path, rules))
    bad = ["", "link.mp4", "away/outside.mp4", "hard.mp4", "pipe", "in", "../outside.mp4", "in/../../outside.mp4",
           str(outside), "in//a.mp4", "./in/a.mp4", "in/a.mp4\0", "~/a", "/dev/zero", "in/%61.mp4"]  # fmt: skip
    for path in bad:
        with pytest.raises(AddressRefused) as caught:
            named_files.open_file(path, rules)
        assert str(caught.value) == "there is no such file", "the same words for all"
    with pytest.raises(AddressRefused, match="--uri-root"):
        named_files.open_file(str(inside), SourceRules(any_file=False))
    with pytest.raises(AddressRefused, match="--cameras"):
        sources.find("/dev/video0", rules)


# What came of them


def test_results_are_kept_up_to_a_number() -> None:
    results = ResultHistory(3)
    for number in range(5):
        results.add(number, None, str(number))
    assert [one.message for one in results.take()] == ["2", "3", "4"]
    assert (results.count, results.dropped) == (5, 2)
    assert results.take() == []
    heard: list[Result] = []
    lost: list[int] = []
    results.listen(1, 0, heard.append, lost.append)
    results.add(5, None, "5")
    assert ([one.number for one in heard], lost) == ([3, 4, 5, 6], [2])
    results.forget(1)
    results.add(6, None, "6")
    assert len(heard) == 4
