"""What is unpacked of a zip file that a stranger has made, and what is refused."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from panglot_worker.files import zip_files

LARGE = 1 << 30


def packed(archive: Path, *entries: tuple[str, bytes], mode: int = 0, flags: int = 0) -> str:
    """Write an archive, in which names are as given."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in entries:
            entry = zipfile.ZipInfo("x")
            entry.filename, entry.external_attr, entry.flag_bits = name, mode << 16, flags
            opened.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return str(archive)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_and_folders_are_unpacked(tmp_path: Path) -> None:
    archive = packed(
        tmp_path / "a.zip", ("a.txt", b"a"), ("f/", b""), ("f/b.txt", b"b"), ("./g/h/c", b"c"), ("ü", b"u")
    )
    zip_files.unpack(archive, str(tmp_path / "out"), LARGE)
    assert files(tmp_path / "out") == {"a.txt": b"a", "f/b.txt": b"b", "g/h/c": b"c", "ü": b"u"}


REFUSED = {
    "a parent": ("../a", "leads out"),
    "a parent within": ("f/../../a", "leads out"),
    "a path of the machine": ("/tmp/a", "leads out"),
    "a backslash": ("..\\a", "no name of a file"),
    "a control character": ("a\nb", "no name of a file"),
    "a long name": ("x" * 256, "too long"),
    "a long path": ("/".join(["x" * 200] * 11), "too long"),
    "many folders": ("/".join("x" * 65), "too long"),
    "no name": (".", "twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    entry, reason = REFUSED[name]
    with pytest.raises(zip_files.BadArchive, match=reason):
        zip_files.unpack(packed(tmp_path / "a.zip", (entry, b"x")), str(tmp_path / "in" / "out"), LARGE)
    assert set(files(tmp_path)) == {"a.zip"}


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_path_that_is_there_twice_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    archive = packed(tmp_path / "a.zip", *((name, b"x") for name in names))
    with pytest.raises(zip_files.BadArchive, match="twice"):
        zip_files.unpack(archive, str(tmp_path / "out"), LARGE)


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    for mode in (stat.S_IFLNK | 0o777, stat.S_IFIFO, stat.S_IFCHR):
        archive = packed(tmp_path / "a.zip", ("a", b"/etc/passwd"), mode=mode)
        with pytest.raises(zip_files.BadArchive, match="neither a file nor a folder"):
            zip_files.unpack(archive, str(tmp_path / f"out{mode}"), LARGE)


def test_what_becomes_too_large_is_refused_whatever_it_says(tmp_path: Path) -> None:
    archive = Path(packed(tmp_path / "a.zip", ("a", bytes(40_000)), ("b", bytes(40_000))))
    with pytest.raises(zip_files.BadArchive, match="more than 50000 bytes"):
        zip_files.unpack(str(archive), str(tmp_path / "out"), 50_000)
    assert sum(map(len, files(tmp_path / "out").values())) <= 50_000


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_files, "MOST_FILES", 3)
    archive = packed(tmp_path / "a.zip", *((f"f/{number}", b"") for number in range(3)))
    with pytest.raises(zip_files.BadArchive, match="more than 3 files"):
        zip_files.unpack(archive, str(tmp_path / "out"), LARGE)
    monkeypatch.setattr(zip_files, "LARGEST_DIRECTORY", 100)
    with pytest.raises(zip_files.BadArchive, match="lists too many files"):
        zip_files.unpack(archive, str(tmp_path / "more"), LARGE)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = Path(packed(tmp_path / "a.zip", ("a", b"content of a file" * 100))).read_bytes()
    middle = whole[:40] + b"\xff" * 8 + whole[48:]
    for number, content in enumerate((b"", b"no archive", whole[:-30], middle)):
        (tmp_path / "b.zip").write_bytes(content)
        with pytest.raises(zip_files.BadArchive):
            zip_files.unpack(str(tmp_path / "b.zip"), str(tmp_path / f"out{number}"), LARGE)


def test_a_damaged_entry_of_any_compression_is_refused(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive = tmp_path / f"{method}.zip"
        with zipfile.ZipFile(archive, "w", method) as opened:
            opened.writestr("a", bytes(range(256)) * 100)
        whole = bytearray(archive.read_bytes())
        whole[45:60] = b"\xff" * 15
        archive.write_bytes(whole)
        with pytest.raises((zip_files.BadArchive, OSError)):
            zip_files.unpack(str(archive), str(tmp_path / str(method)), LARGE)
