"""What a recording uses of memory is released, however its exchanges end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from panglot.recording.recorder import Recorder
from panglot.recording.sampling import Sampler, SamplingRules
from panglot.recording.sink import RecorderOptions
from panglot.recording.tap import ConnectionTap
from support.server import wait_until

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    running = Recorder(RecorderOptions(tmp_path / "old.rec", memory=100_000))
    yield running
    running.close()


@pytest.mark.parametrize(
    ("requests", "answers"),
    [
        (REQUEST, ANSWER),
        (REQUEST, b""),
        (REQUEST, ANSWER[:-1]),
        (REQUEST[:-1], b""),
        (REQUEST[:-1], ANSWER),
        (REQUEST * 5, ANSWER * 2),
        (REQUEST, b"220 mail\r\n\r\n"),
        (REQUEST + b"\x00\x01", ANSWER + b"nonsense\r\n\r\n"),
        (REQUEST, b"HTTP/1.1 101 Switching\r\n\r\n\x00"),
        (REQUEST, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (b"POST / HTTP/1.1\r\nContent-Length: 90000\r\n\r\n" + bytes(90_000), ANSWER[:-2] + bytes(90_000)),
        (
            b"POST / HTTP/1.1\r\nX: " + b"y" * 90_000 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 90_000 + b"\r\n\r\n",
        ),
    ],
)
def test_memory_is_released_however_an_exchange_ends(recorder: Recorder, requests: bytes, answers: bytes) -> None:
    tap = ConnectionTap(recorder)
    assert (
        b"".join(piece.raw for piece in tap.request(requests)) + b"".join(piece.raw for piece in tap.request_ended())
        == requests
    )
    tap.answer(answers)
    tap.closed("gone")
    wait_until(lambda: recorder.take(recorder.options.memory))
    recorder.release(recorder.options.memory)


class FailingSampler(Sampler):
    def wants_answer(self, status: int, failed: bool, now: float) -> NoReturn:
        raise RuntimeError("planted")


def test_a_fault_of_the_tap_ends_the_tap_and_releases_its_memory(recorder: Recorder) -> None:
    recorder.sampler = FailingSampler(SamplingRules())
    tap = ConnectionTap(recorder)
    for _ in range(3):
        assert b"".join(piece.raw for piece in tap.request(REQUEST)) == REQUEST
        tap.answer(ANSWER)
    tap.closed("gone")
    assert recorder.take(recorder.options.memory)
    recorder.release(recorder.options.memory)


def test_requests_whose_answers_cannot_be_followed_do_not_pile_up(recorder: Recorder) -> None:
    tap = ConnectionTap(recorder)
    for _ in range(1000):
        deque(tap.request(REQUEST), 0)
        tap.answer(b"220 mail\r\n\r\n")
    assert not tap._open
    assert recorder.take(recorder.options.memory)
    recorder.release(recorder.options.memory)


def test_a_disk_that_is_full_at_the_end_holds_nobody_up(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder(RecorderOptions(tmp_path / "folder.rec"), said.append)
    recorder._file.abandon()
    recorder.close()
    assert not recorder._thread.is_alive()
    assert "the recording has ended" in said[0]


def test_a_rotation_that_fails_ends_the_recording_in_one_line(tmp_path: Path) -> None:
    folder, said = tmp_path / "folder", []
    folder.mkdir()
    recorder = Recorder(RecorderOptions(folder / "old.rec", rotate_age=0.001), said.append)
    folder.rename(tmp_path / "elsewhere")
    time.sleep(0.01)
    tap = ConnectionTap(recorder)
    deque(tap.request(REQUEST), 0)
    tap.answer(ANSWER)
    wait_until(lambda: said)
    assert "No such file" in said[0]
    recorder.close()
