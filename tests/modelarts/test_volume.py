"""Size and number: the largest upload, a thousand uploads, and what they leave behind."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from support.modelarts import package
from support.server import Server, serving

MOST = 12 * 1024 * 1024
BOUNDARY = "0123456789abcdef"
SIZES = """
from model_service.model_service import SingleNodeService


class Service(SingleNodeService):
    def _preprocess(self, data):
        return {name: len(file.getvalue()) for files in data.values() for name, file in files.items()}
"""


def form(size: int) -> bytes:
    """A multipart body of exactly so many bytes."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="images"; filename="large.bin"\r\n\r\n'.encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()
    return head + b"x" * (size - len(head) - len(tail)) + tail


def send(server: Server, body: bytes) -> httpx.Response:
    kind = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return httpx.post(server.url, content=body, headers=kind, timeout=30)


def test_twelve_megabytes_less_one_byte_and_more_by_one(tmp_path: Path) -> None:
    with serving(package(tmp_path, SIZES)) as server:
        answer = send(server, form(MOST - 1))
        assert answer.status_code == 200
        assert answer.json()["large.bin"] > MOST - 200
        assert send(server, form(MOST)).status_code == 200
        answer = send(server, form(MOST + 1))
        assert answer.status_code == 413
        assert answer.json() == {"error_code": "APIG.0201", "error_msg": "Request entity too large"}
        assert server.client.post("/", files={"a": ("b", b"1")}).json() == {"b": 1}


def test_a_thousand_uploads_leave_no_file_and_no_memory(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with serving(package(tmp_path / "p", SIZES), env=env) as server:
        upload = {"files": {"images": ("a.bin", os.urandom(300_000)), "other": ("b.bin", b"1")}, "data": {}}

        def ask(count: int) -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                for _ in range(count):
                    assert client.post("/", **upload).json() == {"a.bin": 300_000, "b.bin": 1}

        ask(100)
        [worker] = server.workers()
        processes = [psutil.Process(server.process.pid), worker]
        files = sorted(path for path in (tmp_path / "tmp").rglob("*") if not path.is_symlink())
        before = [process.memory_info().rss for process in processes]
        fds = [process.num_fds() for process in processes]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, [250] * 4))
        grown = [process.memory_info().rss - start for process, start in zip(processes, before, strict=True)]
        assert max(grown) < 24 * 1024 * 1024, grown
        assert all(process.num_fds() <= count + 5 for process, count in zip(processes, fds, strict=True))
        assert sorted(path for path in (tmp_path / "tmp").rglob("*") if not path.is_symlink()) == files
        [folder] = (tmp_path / "tmp").glob("panglot-run-*/worker-*")
        assert [path.name for path in folder.iterdir()] == ["model"], "nothing but the links of the platform"
    assert not any((tmp_path / "tmp").iterdir())
