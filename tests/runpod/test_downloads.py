"""The SDK's helpers that download what a job names and save what it makes, where the SDK is not installed."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.scripted import Scripted, scripted, simple
from support.server import PACKAGES, Server, serving

MOST = 40_000


def archive(**files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, each in files.items():
            opened.writestr(name, each)
    return content.getvalue()


NO_LENGTH = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
    MOST + 1,
    b"x" * (MOST + 1),
)
ANSWERS = {
    "/a.txt": simple(b"one"),
    "/b.png?size=2": simple(b"two"),
    "/large.bin": simple(b"x" * (MOST + 1)),
    "/endless.bin": NO_LENGTH,
    "/gone": simple(b"", "404 Not Found"),
    "/short": simple(b"abc").replace(b"ength: 3", b"ength: 9"),
    "/good.zip": simple(archive(**{"a.txt": b"a", "f/b.txt": b"b"})),
    "/leads-out.zip": simple(archive(**{"../../outside.txt": b"x"})),
    "/bomb.zip": simple(archive(zeros=bytes(MOST * 100))),
    "/no.zip": simple(b"no archive"),
}


@pytest.fixture(scope="module")
def other() -> Iterator[Scripted]:
    with scripted(ANSWERS) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package: the helpers write beside the script."""
    return Path(shutil.copytree(PACKAGES / "runpod_downloads", tmp_path_factory.mktemp("own") / "downloads"))


@pytest.fixture(scope="module")
def server(folder: Path, other: Scripted) -> Iterator[Server]:
    flags = ("--url-allow", other.host, "--fetch-bytes", str(MOST), "--fetch-urls", "8")
    with serving(folder, "--workers", "1", *flags) as running:
        yield running


def answered(server: Server, **given: Any) -> dict[str, Any]:
    return dict(server.client.post("/runsync", json={"input": given}).json())


def failure(server: Server, **given: Any) -> str:
    told = answered(server, **given)
    assert told["status"] == "FAILED", told
    return str(json.loads(told["error"])["error_message"])


@pytest.mark.document("runpod.30")
def test_files_are_downloaded_and_one_that_cannot_be_had_is_none(server: Server, other: Scripted) -> None:
    paths = ["/a.txt", "/large.bin", "/endless.bin", "/gone", "/short", "/b.png?size=2"]
    told = answered(server, urls=[*map(other.url, paths), None, other.url("/a.txt%00" + "x" * 99)])["output"]
    assert told["contents"] == ["one", None, None, None, None, "two", None, None]
    assert (told["names"][0], told["names"][5], told["there"]) == (".txt", ".png", 2), "nothing is left of the others"
    server.wait_log(f"Failed to download .*/large.bin: the file has {MOST + 1} bytes, more than {MOST}")
    assert answered(server, urls=other.url("/a.txt"))["output"]["contents"] == ["one"]


@pytest.mark.document("runpod.30")
def test_only_hosts_that_are_allowed_are_asked_and_not_for_too_many_files(server: Server, other: Scripted) -> None:
    assert "--url-allow" in failure(server, urls=[f"{server.url}/health"])
    assert "--fetch-urls" in failure(server, urls=[other.url("/a.txt")] * 9)


@pytest.mark.document("runpod.30")
def test_an_archive_is_unpacked_within_limits(server: Server, other: Scripted, folder: Path) -> None:
    told = answered(server, file=other.url("/good.zip"))["output"]
    assert (told["type"], told["original_name"]) == ("zip", "good.zip")
    assert told["files"] == {"a.txt": "a", "f/b.txt": "b"}
    assert answered(server, file=other.url("/a.txt"))["output"]["extracted_path"] is None
    assert "leads out of the archive" in failure(server, file=other.url("/leads-out.zip"))
    assert f"more than {MOST} bytes" in failure(server, file=other.url("/bomb.zip"))
    assert "damaged" in failure(server, file=other.url("/no.zip"))
    assert "more than" in failure(server, file=other.url("/large.bin"))
    assert not list(folder.parent.rglob("outside.txt"))


@pytest.mark.document("runpod.14")
def test_a_file_is_saved_below_its_folder_and_nowhere_else(server: Server, folder: Path) -> None:
    assert answered(server, saved="a/b.txt")["output"]["path"] == "local_upload/a/b.txt"
    assert (folder / "local_upload" / "a" / "b.txt").read_bytes() == b"saved"
    for name in ("../outside.txt", "/tmp/outside.txt", "a/../../outside.txt"):
        assert "leads out of the folder" in failure(server, saved=name)
    assert not list(folder.parent.rglob("outside.txt"))
