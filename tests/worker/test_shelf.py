"""What a node keeps of packages: sent once, checked, never trusted."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from panglot_worker.node import handshake, shelf
from panglot_worker.node.listing import ListedFile, name_of


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> shelf.Shelf:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return shelf.Shelf()


def entry(path: str, content: bytes, mode: int = 0o644) -> ListedFile:
    return ListedFile(path, mode, len(content), hashlib.sha256(content).hexdigest())


def sent(kept: shelf.Shelf, files: dict[str, bytes], entries: list[ListedFile], name: str = "") -> Any:
    """Have a shelf receive a folder from a front that sends `files`. The places it asked for, and what came of it."""
    ours, theirs = socket.socketpair()
    result: list[Any] = []

    def receive() -> None:
        try:
            result.append(kept.receive(theirs))
        except Exception as error:
            result.append(error)
        theirs.close()

    thread = threading.Thread(target=receive)
    thread.start()
    missing: list[int] = []
    with ours:
        try:
            files_listed = [list(entry) for entry in entries]
            said = {"folder": name or name_of(entries), "title": "package", "files": files_listed}
            ours.sendall(handshake.message(said))
            missing = handshake.receive_blocking(ours)["missing"]
            for place in missing:
                ours.sendall(files[entries[place].path])
        except OSError:
            pass
    thread.join(20)
    return missing, result[0]


FILES = {"model.py": b"print(1)", "data/weights.bin": b"w" * 3_000_000, "data/copy.bin": b"w" * 3_000_000}
ENTRIES = [entry(path, content) for path, content in FILES.items()] + [ListedFile("empty/", 0o755, 0, "")]


def test_a_folder_is_sent_once(kept: shelf.Shelf) -> None:
    missing, folder = sent(kept, FILES, ENTRIES)
    assert len(missing) == 2, "the copy is the same file"
    assert {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()} == set(FILES)
    assert all(Path(folder, path).read_bytes() == content for path, content in FILES.items())
    assert os.path.isdir(os.path.join(folder, "empty"))
    assert sent(kept, FILES, ENTRIES) == ([], folder)


def test_a_new_version_needs_only_what_changed(kept: shelf.Shelf) -> None:
    _, before = sent(kept, FILES, ENTRIES)
    changed = {**FILES, "model.py": b"print(2)"}
    missing, folder = sent(kept, changed, [entry(path, content) for path, content in changed.items()])
    assert missing == [0]
    assert folder != before
    assert Path(before, "model.py").read_bytes() == b"print(1)"
    assert Path(folder, "model.py").read_bytes() == b"print(2)"


def test_what_a_script_changed_is_sent_again(kept: shelf.Shelf) -> None:
    _, folder = sent(kept, FILES, ENTRIES)
    Path(folder, "model.py").write_bytes(b"print(9)")
    Path(folder, "left.txt").write_text("of the script's own")
    missing, again = sent(kept, FILES, ENTRIES)
    assert missing == [0]
    assert again == folder
    assert Path(folder, "model.py").read_bytes() == b"print(1)"


def test_a_file_that_is_not_what_it_should_be_is_refused(kept: shelf.Shelf) -> None:
    false = {**FILES, "model.py": b"print(3)"}
    _, error = sent(kept, false, ENTRIES)
    assert isinstance(error, ValueError)
    assert "model.py" in str(error)
    missing, folder = sent(kept, FILES, ENTRIES)
    assert 0 in missing
    assert Path(folder, "model.py").read_bytes() == b"print(1)"


def test_a_list_that_was_not_announced_is_refused(kept: shelf.Shelf) -> None:
    _, error = sent(kept, FILES, ENTRIES, name="0" * 64)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("path", ["../outside", "/tmp/outside", "data/../../outside", "../folders/x/"])
def test_no_file_leads_out_of_its_folder(kept: shelf.Shelf, path: str) -> None:
    entries = [ListedFile(path, 0o755, 0, "")] if path.endswith("/") else [entry(path, b"x")]
    _, error = sent(kept, {path: b"x"}, entries)
    assert isinstance(error, ValueError)
    assert not any(path.name.startswith("outside") for path in Path(kept.base).parent.rglob("*"))


def test_a_digest_is_no_path(kept: shelf.Shelf) -> None:
    _, error = sent(kept, {"a": b"x"}, [ListedFile("a", 0o644, 1, "../../outside")])
    assert isinstance(error, ValueError)


def test_a_front_that_dies_half_way_leaves_nothing_behind(kept: shelf.Shelf) -> None:
    _, error = sent(kept, {**FILES, "data/weights.bin": b"w", "data/copy.bin": b"w"}, ENTRIES)
    assert isinstance(error, OSError)
    assert not os.listdir(os.path.join(kept.base, "runs"))


def test_old_folders_are_swept_unless_they_are_used(kept: shelf.Shelf) -> None:
    _, folder = sent(kept, FILES, ENTRIES)
    late = os.stat(folder).st_ctime + 2 * shelf.RETAINED
    other = shelf.Shelf()
    other.sweep(late)
    assert os.path.isdir(folder), "another agent uses it"
    kept.close()
    other.sweep(late - 2 * shelf.RETAINED)
    assert os.path.isdir(folder), "it was used a moment ago"
    other.sweep(late)
    assert not os.path.isdir(folder)
    other.sweep(late)
    assert not os.listdir(os.path.join(kept.base, "files"))


def test_a_shelf_of_somebody_else_is_not_used(kept: shelf.Shelf) -> None:
    os.chmod(kept.base, 0o755)
    with pytest.raises(OSError, match="others can read it"):
        shelf.Shelf()


def test_a_list_of_many_long_names_travels(kept: shelf.Shelf) -> None:
    """More than four megabytes of names; all are the same file."""
    long = "/".join(["folder-" + "x" * 200] * 4)
    entries = [entry(f"{long}/{number}", b"same") for number in range(5000)]
    missing, folder = sent(kept, {entries[-1].path: b"same"}, entries)
    assert missing == [4999]
    assert len(os.listdir(os.path.join(folder, long))) == 5000
