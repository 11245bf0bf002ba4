"""A script's interpreter needs no PyAV: where it has none, that of Panglot decodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support import interpreters
from support.descent import children
from support.server import PACKAGES, ROOT, panglot, serving
from support.streams import ended, messages, start
from support.videos import made, make

FRAMES = 40


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with numpy and without PyAV."""
    return interpreters.with_only(tmp_path_factory.mktemp("python"), "numpy")


def test_videos_of_a_graph(python: str, tmp_path: Path) -> None:
    clip = make(tmp_path / "clip.mp4", FRAMES)
    # What the script's interpreter is told by variables is not for the one that decodes.
    env = {"PYTHONPATH": str(tmp_path / "none"), "TEST_PAUSE": "0.05"}
    with serving("megflow_video", "--uri-root", str(tmp_path), "--python", python, env=env) as server:
        stream = start(server, clip)
        (worker,) = server.workers()
        assert Path(worker.cmdline()[0]) == Path(python)
        assert {Path(decoder.cmdline()[0]) for decoder in decoders(worker)} == {Path(sys.executable)}
        assert ended(server, stream)["state"] == "finished"
        assert [(one["frame"], one["read"]) for one in messages(server, stream)] == [(n, n) for n in range(FRAMES)]


def decoders(worker: psutil.Process) -> list[psutil.Process]:
    return [child for child in children(worker) if "decoder" in " ".join(child.cmdline())]


def test_videos_of_a_plain_script(python: str) -> None:
    with serving("frames", "--python", python) as server:
        answer = server.client.post("/analyze_video", content=made(5), headers={"accept": "application/x-ndjson"})
        assert [json.loads(line)["result"]["read"] for line in answer.text.splitlines()] == list(range(5))


def test_video_input(python: str, tmp_path: Path) -> None:
    """A graph that serves nothing, run to its end."""
    make(tmp_path / "clip.mp4", FRAMES)
    package = tmp_path / "plays"
    package.mkdir()
    text = (PACKAGES / "megflow_video" / "megflow_video.toml").read_text()
    text = text.replace(
        'ty = "VideoServer", port = 8086', f'ty = "VideoInput", urls = ["{tmp_path}/clip.mp4"], repeat = 1'
    )
    (package / "plays.toml").write_text(text)
    script = next((PACKAGES / "megflow_video").glob("*.py")).read_text()
    (package / "nodes.py").write_text(
        script.replace("self.out.send(envelope.repack", "print(told['read']); self.out.send(envelope.repack")
    )
    done = panglot("serve", str(package), "--python", python)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(number) for number in range(FRAMES)]


@pytest.mark.parametrize("package", ["megflow_video", "frames"])
def test_what_is_missing_is_told_at_once(package: str, python: str, tmp_path: Path) -> None:
    bare = interpreters.bare(tmp_path / "bare")
    done = panglot("serve", str(PACKAGES / package), "--port", "0", "--python", bare)
    assert done.returncode == 3
    assert "needs numpy" in done.stderr
    assert "pip install numpy, for the interpreter the script runs in" in done.stderr


def test_pyav_that_is_nowhere_is_told_too(python: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); "
        "from panglot_worker.video import interpreter, limits; print(interpreter.lack(limits.VideoLimits()))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert "what='PyAV'" in done.stdout
    assert "panglot[video]" in done.stdout
