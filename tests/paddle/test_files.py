"""Private files, contents told by their first bytes, and programs that are not what they should be."""

from __future__ import annotations

import fcntl
import io
import os
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from panglot_worker.dialects.paddle import contents
from panglot_worker.dialects.paddle import private_files as private
from panglot_worker.dialects.paddle.private_files import PrivateFiles
from panglot_worker.runtimes.paddle import model_files
from panglot_worker.runtimes.paddle import program_file as protobuf


def test_files_are_private_and_go() -> None:
    files = PrivateFiles()
    one = Path(files.write(b"abc", ".jpg"))
    two = Path(files.write(b"abc", ".png", inside_folder=True))
    assert one.read_bytes() == b"abc"
    assert one.suffix == ".jpg"
    assert one.stat().st_mode & 0o777 == 0o600
    assert one.parent.stat().st_mode & 0o777 == 0o700
    assert [path.suffix for path in two.iterdir()] == [".png"]
    files.remove([str(one), str(two), str(one)])
    assert list(one.parent.iterdir()) == []
    files.close()
    assert not one.parent.exists()
    assert Path(files.write(b"", "")).exists(), "it can begin again"
    files.close()


def test_what_killed_workers_left_is_swept(tmp_path: Path) -> None:
    folders = {name: tmp_path / (private.PREFIX + name) for name in ("old", "held", "new")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "input-1.jpg").write_bytes(b"x")
    (tmp_path / "other").mkdir()
    long_ago = time.time() - 2 * private.FRESH
    for name in ("old", "held"):
        os.utime(folders[name], (long_ago, long_ago))
    os.utime(tmp_path / "other", (long_ago, long_ago))
    lock = os.open(folders["held"], os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    private.sweep(str(tmp_path))
    os.close(lock)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "panglot-input-held", "panglot-input-new"]


def test_a_full_memory_folder_is_left_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = tmp_path / "full"
    full.mkdir()
    monkeypatch.setattr(private, "MEMORY", str(full))
    files = PrivateFiles()
    assert files.write(b"a", ".jpg").startswith(str(full))
    full_folder = next(full.iterdir())
    full_folder.rename(tmp_path / "gone")  # as good as full: nothing can be written there
    path = Path(files.write(b"b", ".jpg"))
    assert path.read_bytes() == b"b"
    assert not str(path).startswith(str(full))
    files.close()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO"])
def test_pictures_are_known_by_their_content(form: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, form)
    content = buffer.getvalue()
    assert contents.is_picture(content)
    assert contents.ending(content, "nonsense.exe", "text/plain") != ".exe"
    assert contents.unreadable(content) == ""
    assert contents.unreadable(content[:20]) != ""


@pytest.mark.parametrize(
    ("name", "media", "ending"),
    [
        ("a.WAV", "", ".wav"),
        ("../../x.tar.gz", "", ".gz"),
        ("a.b/c", "text/plain", ".txt"),
        ("a", "text/csv", ".csv"),
        ("x." + "y" * 99, "", ""),
        ("x.p\0y", "", ""),
    ],
)
def test_other_endings_come_from_the_name_or_the_type(name: str, media: str, ending: str) -> None:
    assert contents.ending(b"whatever", name, media) == ending


@given(st.binary(max_size=200))
@example(b"\r\x00\x00\x00\x00")
def test_any_bytes_are_told_apart_from_a_program(content: bytes) -> None:
    if protobuf.is_program(content):
        assert content[:1] == b"\n"
    try:
        protobuf.inputs(content)
    except (ValueError, LookupError):
        pass


def test_files_that_cannot_be_read_have_no_inputs(tmp_path: Path) -> None:
    for text in ("", "{", "{}", '{"program": {"regions": []}}', '{"program": 5}'):
        (tmp_path / "inference.json").write_text(text)
        assert model_files.inputs(str(tmp_path / "inference.json"), new=True) == []
    assert model_files.inputs(str(tmp_path / "nowhere"), new=False) == []
