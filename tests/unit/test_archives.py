"""Archives of packages: unpacked whole and once, and nothing of a hostile one is written outside of its folder."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.packages import archive_cache, archives
from panglot.packages.archive_cache import ArchiveCache
from panglot.packages.archives import ArchiveLimits

MIB = 1 << 20
Write = Callable[[Path], object]


def tar(*members: tuple[str, object], mode: str = "w:gz", file_format: int = tarfile.GNU_FORMAT) -> Write:
    """What writes a tar file. A member is a name with bytes, None (a folder), a number (of zeros) or a header."""

    def write(path: Path) -> None:
        with tarfile.open(path, mode, format=file_format, encoding="utf-8", errors="surrogateescape") as archive:  # type: ignore[call-overload]
            for name, content in members:
                header = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
                header.name = name
                body = bytes(content) if isinstance(content, bytes | int) else b""
                if content is None:
                    header.type = tarfile.DIRTYPE
                elif not isinstance(content, tarfile.TarInfo):
                    header.size = len(body)
                archive.addfile(header, io.BytesIO(body))

    return write


def entry(kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    header = tarfile.TarInfo()
    header.type, header.linkname, header.size = kind, target, size
    return header


def link(target: str) -> tarfile.TarInfo:
    return entry(tarfile.SYMTYPE, target)


def hard_link(target: str) -> tarfile.TarInfo:
    return entry(tarfile.LNKTYPE, target)


def zipped(*members: tuple[str, bytes, int], compression: int = zipfile.ZIP_DEFLATED) -> Write:
    """What writes a zip file of names, contents and modes."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content, mode in members:
                info = zipfile.ZipInfo(name)
                # ZipInfo mends names that a hostile archive would have.
                info.filename = name
                info.external_attr, info.compress_type = mode << 16, compression
                archive.writestr(info, content)

    return write


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "into"
    folder.mkdir(parents=True)
    return folder


def unpack(write: Write, into: Path, limits: ArchiveLimits | None = None) -> Path:
    path = into.parent.parent / "archive"
    write(path)
    with open(path, "rb") as file:
        archives.unpack(file, into, limits)
    return into


# What archives may have


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("file_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_file_is_unpacked(mode: str, file_format: int, into: Path) -> None:
    tool = tarfile.TarInfo()
    tool.mode, tool.mtime = 0o6755, 1_600_000_000
    long = "a" * 90 + "/" + "b" * 90
    members = (("./", None), ("./model.py", b"x"), ("tool", tool), ("deep/er/ä.txt", b"y" * 3 * MIB), (long, b"z"))
    unpack(tar(*members, mode=mode, file_format=file_format), into)
    assert (into / "model.py").read_bytes() == b"x"
    assert (into / "deep/er/ä.txt").stat().st_size == 3 * MIB
    assert (into / long).read_bytes() == b"z"
    about = (into / "tool").stat()
    assert about.st_mode & 0o7111 == 0o111, "what can be run stays so, but not as somebody else"
    assert about.st_mtime == 1_600_000_000


def test_a_zip_file_is_unpacked(into: Path) -> None:
    unpack(zipped(("model.py", b"x", 0o644), ("bin/", b"", 0), ("bin/tool", b"#!", 0o100755)), into)
    assert (into / "model.py").read_bytes() == b"x"
    assert os.access(into / "bin/tool", os.X_OK)
    assert not os.access(into / "model.py", os.X_OK)


def test_links_that_stay_inside_are_made(into: Path) -> None:
    unpack(
        tar(
            ("lib/one.so.1", b"so"), ("lib/one.so", link("one.so.1")), ("bin/lib", link("../lib")),
            ("through", link("bin/lib/one.so")), ("same", hard_link("lib/one.so.1")), ("nowhere", link("absent")),
            ("itself", link("itself")),
        ),
        into,
    )  # fmt: skip
    for name in ("lib/one.so", "bin/lib/one.so", "through", "same"):
        assert (into / name).read_bytes() == b"so", name
    assert (into / "nowhere").is_symlink()


def test_links_of_zip_files_are_made(into: Path) -> None:
    unpack(zipped(("a/b", b"x", 0o644), ("c", b"a/b", stat.S_IFLNK | 0o777)), into)
    assert (into / "c").is_symlink()
    assert (into / "c").read_bytes() == b"x"


# What is refused


def zip_with_method(path: Path) -> None:
    zipped(("a", b"x" * 100, 0o644), compression=zipfile.ZIP_LZMA)(path)


def encrypted(path: Path) -> None:
    zipped(("a", b"x", 0o644), compression=zipfile.ZIP_STORED)(path)
    raw = bytearray(path.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)


def flipped(write: Write, position: int) -> Write:
    def make(path: Path) -> None:
        write(path)
        raw = bytearray(path.read_bytes())
        raw[position] ^= 0xFF
        path.write_bytes(raw)

    return make


def cut(write: Write, keep: float) -> Write:
    def make(path: Path) -> None:
        write(path)
        raw = path.read_bytes()
        path.write_bytes(raw[: int(len(raw) * keep)])

    return make


def raw(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def headers(kind: bytes, count: int) -> Write:
    """Headers about the next file, one after the other."""
    blocks = b"".join(
        entry(kind, size=10).tobuf(tarfile.GNU_FORMAT) + b"15 path=a/b/c/d".ljust(512, b"\0") for _ in range(count)
    )
    return raw(gzip.compress(blocks))


def large_header(kind: bytes) -> Write:
    """A header that says that four gigabytes belong to it, for the standard library to read at once."""
    return raw(gzip.compress(entry(kind, size=1 << 32).tobuf(tarfile.GNU_FORMAT) + bytes(MIB)))


def sparse_of_pax() -> Write:
    header = tarfile.TarInfo("a")
    header.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a"}
    return tar(("a", header), file_format=tarfile.PAX_FORMAT)


def many_names_in_zip(path: Path) -> None:
    """A list of files of 40 MB, which is written by hand because there is nothing to it."""
    record = b"PK\1\2" + bytes(42) + b"a"
    count = 40 * MIB // len(record)
    directory = record * count
    end = b"PK\5\6" + bytes(4) + b"\xff\xff\xff\xff" + len(directory).to_bytes(4, "little") + bytes(6)
    path.write_bytes(b"PK\3\4" + directory + end)


ONE_FILE = tar(("a", os.urandom(20_000)))
OUTSIDE, TWICE, DAMAGED = "leads outside", "twice", "damaged"
REFUSED: dict[str, tuple[Write, str]] = {
    "an absolute name": (tar(("/tmp/harm", b"x")), OUTSIDE),
    "a name that climbs": (tar(("../harm", b"x")), OUTSIDE),
    "a name that climbs later": (tar(("a/../../harm", b"x")), OUTSIDE),
    "a folder that climbs": (tar(("../harm", None)), OUTSIDE),
    "an absolute name in a zip file": (zipped(("/tmp/harm", b"x", 0)), OUTSIDE),
    "a name that climbs in a zip file": (zipped(("../../harm", b"x", 0)), OUTSIDE),
    "a name for Windows": (zipped(("..\\..\\harm", b"x", 0)), "no name"),
    "a name with a NUL": (zipped(("a\0b", b"x", 0)), ""),
    "a name with a new line": (tar(("a\nb", b"x")), "no name"),
    "a name that colours the terminal": (tar(("a\x1b[31m", b"x")), "no name"),
    "a name that is no UTF-8": (tar(("a\udcff", b"x")), "no name"),
    "a long name": (tar(("a" * 300, b"x")), "too long"),
    "many folders in folders": (tar(("a/" * 500 + "a", b"x")), "too long"),
    "no name": (tar(("./", b"x")), ""),
    "a file twice": (tar(("a", b"x"), ("./a", b"y")), TWICE),
    "a file and a folder": (tar(("a", b"x"), ("a/b", b"y")), "as a file and as a folder"),
    "a folder and a file": (tar(("a/b", b"x"), ("a", b"y")), TWICE),
    "an absolute link": (tar(("a", link("/etc/passwd"))), OUTSIDE),
    "a link that climbs": (tar(("b/a", link("../../harm"))), OUTSIDE),
    "a link without a target": (tar(("a", link(""))), OUTSIDE),
    "a link with a new line": (tar(("a", link("b\nc"))), OUTSIDE),
    "a link by way of a link": (tar(("a/b/c", b""), ("d", link("a/b")), ("e", link("d/../../../harm"))), OUTSIDE),
    "a link that depends on a link": (tar(("a/b/c", b""), ("x/d", link("../a/b")), ("e", link("x/d/../.."))), OUTSIDE),
    "a file through a link": (tar(("a", link("b")), ("a/harm", b"x")), "as a file and as a folder"),
    "a file instead of a link": (tar(("a", link("../harm")), ("a", b"x")), TWICE),
    "an absolute link in a zip file": (zipped(("a", b"/etc/passwd", stat.S_IFLNK | 0o777)), OUTSIDE),
    "an endless link in a zip file": (zipped(("a", b"b" * MIB, stat.S_IFLNK | 0o777)), OUTSIDE),
    "a hard link to the outside": (tar(("a", hard_link("/etc/passwd"))), OUTSIDE),
    "a hard link that climbs": (tar(("a", hard_link("../../harm"))), OUTSIDE),
    "a hard link to nothing": (tar(("a", hard_link("b"))), "no file of this archive"),
    "a hard link to a link": (tar(("b", link("c")), ("a", hard_link("b"))), "no file of this archive"),
    "a hard link to itself": (tar(("a", hard_link("a"))), "no file of this archive"),
    "a hard link to a folder": (tar(("b", None), ("a", hard_link("b"))), "no file of this archive"),
    "a device": (tar(("a", entry(tarfile.CHRTYPE))), "neither a file"),
    "a disk": (tar(("a", entry(tarfile.BLKTYPE))), "neither a file"),
    "a pipe": (tar(("a", entry(tarfile.FIFOTYPE))), "neither a file"),
    "a pipe in a zip file": (zipped(("a", b"", stat.S_IFIFO | 0o644)), "neither a file"),
    "a sparse file": (tar(("a", entry(tarfile.GNUTYPE_SPARSE))), "sparse"),
    "a sparse file of another kind": (sparse_of_pax(), "sparse"),
    "a large long name": (large_header(tarfile.GNUTYPE_LONGNAME), "impossible size"),
    "large further fields": (large_header(tarfile.XHDTYPE), "impossible size"),
    "large fields for all": (large_header(tarfile.XGLTYPE), "impossible size"),
    "many headers for one file": (headers(tarfile.GNUTYPE_LONGNAME, 5_000), DAMAGED),
    "many further fields for one file": (headers(tarfile.XHDTYPE, 5_000), DAMAGED),
    "a zip file that lists too many": (many_names_in_zip, "too many files"),
    "an encrypted zip file": (encrypted, "encrypted"),
    "a zip file of another compression": (zip_with_method, "compressed in a way"),
    "a zip file that is cut": (cut(zipped(("a", os.urandom(5_000), 0)), 0.5), DAMAGED),
    "a zip file with a flipped byte": (flipped(zipped(("a", os.urandom(5_000), 0)), 2_000), DAMAGED),
    "a tar.gz file that is cut": (cut(ONE_FILE, 0.5), DAMAGED),
    "a tar.gz file without its checksum": (cut(ONE_FILE, 0.9999), DAMAGED),
    "a tar.gz file with a flipped byte": (flipped(ONE_FILE, 10_000), DAMAGED),
    "a tar file that is cut": (cut(tar(("a", b"x" * 50_000), mode="w"), 0.5), DAMAGED),
    "a gzip file of something else": (raw(gzip.compress(b"hello" * 1_000)), DAMAGED),
    "an empty archive": (tar(), "empty"),
    "an empty zip file": (zipped(), "empty"),
    "an empty file": (raw(b""), "neither a zip file nor"),
    "a text": (raw(b"hello"), "neither a zip file nor"),
}  # fmt: skip


@pytest.mark.parametrize("shape", REFUSED)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(shape: str, into: Path) -> None:
    write, said = REFUSED[shape]
    with pytest.raises(StartError) as caught:
        unpack(write, into)
    assert said in caught.value.problem
    assert caught.value.file.endswith("archive")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000
    assert [path.name for path in into.parent.parent.rglob("*") if "harm" in path.name] == []
    assert {path.name for path in into.parent.parent.iterdir()} == {"archive", "outer"}
    assert [path.name for path in into.parent.iterdir()] == ["into"]
    assert not Path("/tmp/harm").exists()


def test_files_folders_and_links_are_counted(into: Path) -> None:
    few = ArchiveLimits(files=10)
    with pytest.raises(StartError, match="more than 10 files"):
        unpack(tar(*((f"{number}", b"") for number in range(11))), into, few)


def test_folders_on_the_way_are_counted(into: Path) -> None:
    with pytest.raises(StartError, match="more than 10 files"):
        unpack(zipped(("a/" * 20 + "a", b"", 0)), into, ArchiveLimits(files=10))


@pytest.mark.parametrize("write", [tar(("a", 40 * MIB)), zipped(("a", bytes(40 * MIB), 0))], ids=["tar.gz", "zip"])
def test_a_bomb_is_refused_before_it_fills_the_disk(write: Write, into: Path) -> None:
    with pytest.raises(StartError, match="becomes more than 10 MiB"):
        unpack(write, into, ArchiveLimits(ratio=20, always=10 * MIB))
    assert sum(path.stat().st_size for path in into.rglob("*")) <= 11 * MIB


def test_a_ratio_is_allowed_for_small_archives(into: Path) -> None:
    unpack(tar(("a", 40 * MIB)), into)
    assert (into / "a").stat().st_size == 40 * MIB


def test_zip_entries_that_share_their_bytes_are_counted_each(into: Path) -> None:
    """The bomb whose entries all point to one piece of compressed zeros."""

    def write(path: Path) -> None:
        zipped(("a", bytes(MIB), 0))(path)
        content = path.read_bytes()
        start, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
        directory, count = content[start:end], 1_000
        tail = b"PK\5\6" + bytes(4) + count.to_bytes(2, "little") * 2
        tail += (len(directory) * count).to_bytes(4, "little") + start.to_bytes(4, "little") + bytes(2)
        path.write_bytes(content[:start] + directory * count + tail)

    with pytest.raises(StartError):
        unpack(write, into, ArchiveLimits(always=10 * MIB))
    assert sum(path.stat().st_size for path in into.rglob("*")) <= 11 * MIB


# The cache


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ArchiveCache]:
    made = ArchiveCache(tmp_path / "cache" / "archives")
    yield made
    made.close()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "model.tar.gz"
    tar(("model.py", b"x"))(path)
    return path


def folders(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.is_dir() and path.name != archive_cache.DIGESTS}


def test_an_archive_is_unpacked_once(cache: ArchiveCache, archive: Path, tmp_path: Path) -> None:
    folder = cache.unpacked(archive)
    (folder / "written-by-a-script").touch()
    copy = tmp_path / "copy.tgz"
    copy.write_bytes(archive.read_bytes())
    assert cache.unpacked(archive) == cache.unpacked(copy) == folder
    assert (folder / "written-by-a-script").exists()


def test_an_archive_that_changed_is_unpacked_anew(cache: ArchiveCache, archive: Path) -> None:
    before = cache.unpacked(archive)
    size = archive.stat().st_size
    for content in (b"y", b"z"):
        tar(("model.py", content))(archive)
        archive.write_bytes(archive.read_bytes().ljust(size, b"\0"))
        folder = cache.unpacked(archive)
        assert folder != before
        assert (folder / "model.py").read_bytes() == content


def test_a_digest_is_stored_for_an_archive_that_rests(cache: ArchiveCache, archive: Path, tmp_path: Path) -> None:
    digests = tmp_path / "cache" / "archives" / archive_cache.DIGESTS
    cache.unpacked(archive)
    assert not digests.exists(), "the file is so new that a change might not be noticed"
    while archive.stat().st_ctime > time.time() - archive_cache.SETTLED:
        time.sleep(0.1)
    folder = cache.unpacked(archive)
    assert [path.read_text() for path in digests.iterdir()] == [folder.name]
    assert cache.unpacked(archive) == folder


def test_a_refused_archive_leaves_nothing(cache: ArchiveCache, archive: Path, tmp_path: Path) -> None:
    tar(("model.py", b"x"), ("../harm", b"x"))(archive)
    with pytest.raises(StartError, match="leads outside"):
        cache.unpacked(archive)
    assert folders(tmp_path / "cache" / "archives") == set()


def test_a_start_that_was_killed_leaves_nothing_for_the_next(
    cache: ArchiveCache, archive: Path, tmp_path: Path
) -> None:
    digest = cache.unpacked(archive).name
    root = tmp_path / "cache" / "archives"
    (root / digest).rename(root / f".{digest}-half")
    (root / f".{digest}-half" / "model.py").unlink()
    folder = cache.unpacked(archive)
    assert (folder / "model.py").exists()
    assert folders(root) == {digest}


def test_starts_at_once_unpack_once(archive: Path, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from panglot.packages import archive_cache\n"
        "folder = archive_cache.unpacked(pathlib.Path(sys.argv[1]))\n"
        "print(folder, (folder / 'model.py').stat().st_ino, len(list(folder.iterdir())))\n"
    )
    tar(*((f"{number}", b"x" * 10_000) for number in range(300)), ("model.py", b""))(archive)
    command = [sys.executable, "-c", code, str(archive)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home")}
    starts = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {start.communicate(timeout=60)[0] for start in starts}
    assert len(said) == 1, "all have the same files"
    assert said.pop().endswith(" 301\n")
    assert len(folders(tmp_path / "home" / "panglot" / "archives")) == 1


def test_threads_of_one_process_unpack_once(cache: ArchiveCache, archive: Path) -> None:
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.append((cache.unpacked(archive) / "model.py").stat().st_ino))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_what_nobody_has_used_for_long_is_removed(cache: ArchiveCache, archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "cache" / "archives"
    paths = []
    for number in range(3):
        path = tmp_path / f"{number}.tar.gz"
        tar(("model.py", str(number).encode()))(path)
        paths.append(path)
    other = ArchiveCache(root)
    used, unused, recent = other.unpacked(paths[0]), other.unpacked(paths[1]), other.unpacked(paths[2])
    other.close()
    cache.unpacked(paths[0])
    long_ago = time.time() - archive_cache.UNUSED - 60
    for folder in (used, unused):
        os.utime(root / (folder.name + archive_cache.LOCK), (long_ago, long_ago))
    folder = ArchiveCache(root).unpacked(archive)
    assert folders(root) == {used.name, recent.name, folder.name}
    assert not (root / (unused.name + archive_cache.LOCK)).exists()
    assert (cache.unpacked(paths[1]) / "model.py").read_bytes() == b"1"


def test_a_cache_that_cannot_be_written_is_named(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match="XDG_CACHE_HOME"):
        ArchiveCache(tmp_path / "file" / "archives").unpacked(archive)
    with pytest.raises(StartError, match="it cannot be read"):
        ArchiveCache(tmp_path / "cache").unpacked(tmp_path / "absent")
