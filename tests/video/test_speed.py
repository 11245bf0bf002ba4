"""What it costs that frames are decoded in another process. Compared side by side, never timed by itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from panglot_worker.video import sources
from panglot_worker.video.decoder_process import DecoderProcess, Ended, Sampling
from panglot_worker.video.limits import SourceRules, VideoLimits
from support.videos import make

FRAMES = 80
ROUNDS = 4
LEAST = 0.8


def picture(number: int, width: int, height: int) -> Any:
    rows = np.arange(height, dtype=np.uint16)[:, None, None] * 3
    columns = np.arange(width, dtype=np.uint16)[None, :, None]
    return ((rows + columns + number * 9 + np.arange(3, dtype=np.uint16) * 40) % 256).astype(np.uint8)


def bare(path: Path) -> float:
    """Frames per second of a loop that decodes and converts, from its first frame on."""
    began, count = 0.0, 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            frame.to_ndarray(format="bgr24")
            began = began or time.perf_counter()
            count += 1
    return (count - 1) / (time.perf_counter() - began)


def ours(path: Path) -> float:
    source = sources.find(str(path), SourceRules())
    decoder = DecoderProcess(source, Sampling(), VideoLimits(), SourceRules())
    began, count = 0.0, 0
    try:
        while True:
            if decoder.next() is not None:
                began = began or time.perf_counter()
                count += 1
    except Ended:
        return (count - 1) / (time.perf_counter() - began)
    finally:
        decoder.close()
        source.close()


@pytest.mark.quiet
def test_as_fast_as_decoding_here(tmp_path: Path) -> None:
    options = {"preset": "ultrafast"}
    path = make(tmp_path / "hd.mp4", FRAMES, width=1920, height=1080, options=options, picture=picture)
    ratios = []
    for _ in range(ROUNDS):
        here, there = bare(path), ours(path)
        ratios.append(there / here)
        if ratios[-1] >= LEAST:
            break
    print("ratios:", [round(ratio, 2) for ratio in ratios])
    assert max(ratios) >= LEAST
