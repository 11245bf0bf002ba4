"""Files that requests name: nothing without a root, and nothing but plain files inside of it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.evals import ask, result
from support.server import Server, serving

ANSWER = (599, {"error": "the uri cannot be read"})
SECRET = b"nobody may read this"


ODD = ("dot.", "50%.txt", "a%2etxt", "~a.txt", "back\\slash.txt")
"""Names that the file system allows."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with all there can be in it, and things outside that must stay there."""
    place = tmp_path_factory.mktemp("place")
    root = place / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (place / "root2").mkdir()
    (root / "a.txt").write_bytes(b"inside")
    (root / "sub" / "deep" / "b c.txt").write_bytes(b"deep inside")
    (root / "\u00e9.txt").write_bytes(b"accent")
    (place / "secret.txt").write_bytes(SECRET)
    (place / "root2" / "secret.txt").write_bytes(SECRET)
    (root / "link.txt").symlink_to(place / "secret.txt")
    (root / "inner.txt").symlink_to("a.txt")
    (root / "middle").symlink_to(place)
    os.link(place / "secret.txt", root / "hard.txt")
    os.mkfifo(root / "fifo")
    sock = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(root)
    sock.bind("socket")
    os.chdir(here)
    (root / "proc").symlink_to("/proc/self")
    with open(root / "sparse.bin", "wb") as file:
        file.truncate(1 << 40)
    (root / "large.bin").write_bytes(b"x" * 6001)
    for name in ODD:
        (root / name).write_bytes(b"odd")
    (root / ("n" * 255)).write_bytes(b"long name")
    return place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving("evals_rows", "--uri-root", str(place / "root"), "--max-body", "6000") as running:
        yield running


def test_what_may_be_read(server: Server, place: Path) -> None:
    files = {"a.txt": "inside", "sub/deep/b c.txt": "deep inside", "\u00e9.txt": "accent", "n" * 255: "long name"}
    files.update(dict.fromkeys(ODD, "odd"))
    for name, text in files.items():
        assert result(server, {"data": {"uri": "file://" + name}})["body"] == [text]
        assert result(server, {"data": {"uri": f"file://{place}/root/{name}"}})["body"] == [text]
        assert result(server, {"data": {"uri": name}})["body"] == [text]
        assert result(server, {"data": {"uri": f"{place}/root/{name}"}})["body"] == [text]


REFUSED = (
    "file://../secret.txt", "file://sub/../../secret.txt", "file://./a.txt", "file://sub/./deep/b c.txt", "file://..",
    "file:///etc/passwd", "file:////etc/passwd", "file://{place}/secret.txt", "file://{place}/root2/secret.txt",
    "file://{place}/root/../secret.txt", "file://{place}/root", "file://~/x", "file://~root/x", "file://$HOME/x",
    "file://a.txt\0", "file://a.txt\0.png", "file://.", "file://", "file:///", "file://sub", "file://sub/",
    "file://nothing", "file://sub/nothing", "file://" + "a/" * 2048 + "b", "file://" + "n" * 256, "file://a.txt/",
    "file://a.txt/b", "file://%2e%2e/secret.txt", "file://a%2Etxt", "file://..\\secret.txt", "file://sub\\..\\a.txt",
    "file://link.txt", "file://inner.txt", "file://middle/secret.txt", "file://hard.txt", "file://fifo", "file://socket",
    "file://proc/environ", "file://proc/fd/0", "file:///proc/self/environ", "file:///proc/self/fd/0",
    "file:///dev/zero", "file:///dev/stdin", "file://sparse.bin", "file://large.bin", "file://file://a.txt",
    "file://localhost/etc/passwd", "file://127.0.0.1/etc/passwd", "file:// a.txt",
)  # fmt: skip


@pytest.mark.parametrize("uri", REFUSED)
def test_what_may_not_be_read(server: Server, place: Path, uri: str) -> None:
    answer = ask(server, {"data": {"uri": uri.format(place=place)}})
    assert (answer.status_code, answer.json()) == ANSWER
    bare = uri.format(place=place)[len("file://") :]
    if bare and not bare.startswith("file:"):
        answer = ask(server, {"data": {"uri": bare}})
        assert (answer.status_code, answer.json()) == ANSWER


@pytest.mark.parametrize("uri", ["file:a.txt", "file:/a.txt", "FILE://a.txt", "c:a.txt", "ftp://a.txt"])
def test_what_is_no_uri_of_a_file(server: Server, uri: str) -> None:
    answer = ask(server, {"data": {"uri": uri}})
    assert (answer.status_code, answer.json()) == (599, {"error": "not supported"})


def test_a_file_nobody_may_read(server: Server, place: Path) -> None:
    file = place / "root" / "closed.txt"
    file.write_bytes(b"x")
    file.chmod(0)
    if os.geteuid() != 0:
        assert ask(server, {"data": {"uri": "file://closed.txt"}}).status_code == 599
    file.unlink()
    assert ask(server, {"data": {"uri": "file://closed.txt"}}).status_code == 599


def test_without_a_root_nothing_is_read() -> None:
    with serving("evals_hello") as plain:
        for uri in ("file:///etc/hostname", "file://eval.py", "file://python/evals/eval.py"):
            answer = ask(plain, {"data": {"uri": uri}})
            assert (answer.status_code, answer.json()) == ANSWER
        for uri in ("/etc/hostname", "eval.py"):
            assert ask(plain, {"data": {"uri": uri}}).json() == {"error": "not supported"}


def test_files_of_one_request_count_together(server: Server, place: Path) -> None:
    (place / "root" / "half.bin").write_bytes(b"x" * 3500)
    for half in ({"uri": "file://half.bin"}, {"uri": "half.bin"}):
        assert ask(server, {"data": half}).status_code == 200
        assert ask(server, {"data": [half, half]}).status_code == 599


def test_a_link_swapped_in_between_never_leads_out(server: Server, place: Path) -> None:
    """A file and a link to a secret take turns under one name, as fast as they can."""
    root = place / "root"
    plain, link, name = root / "plain.tmp", root / "link.tmp", root / "swapped.txt"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            plain.write_bytes(b"harmless")
            os.replace(plain, name)
            link.symlink_to(place / "root2" / "secret.txt")
            os.replace(link, name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [ask(server, {"data": {"uri": "file://swapped.txt"}}) for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert not [answer for answer in seen if SECRET.decode() in answer.text]
    bodies = {answer.json()["result"]["body"][0] for answer in seen if answer.status_code == 200}
    assert bodies <= {"harmless", ""}
