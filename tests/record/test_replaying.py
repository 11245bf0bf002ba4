"""`panglot replay`: no difference against the same package; against another one each difference is found and named."""

from __future__ import annotations

import base64
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from panglot.recording.json_paths import JsonPath
from panglot.recording.recorder import Recorder
from panglot.recording.recording import Pair, RecordedAnswer, RecordedRequest
from panglot.recording.sink import RecorderOptions
from panglot.tools.replay import page
from panglot.tools.replay.answers import Found, Rules, differences
from panglot.tools.replay.findings import Findings
from panglot.tools.replay.pixels import Pixels
from panglot.tools.replay.sending import by_beginning
from support.models import all_of
from support.server import Server, panglot, serving, wait_until
from support.traffic import times
from support.upstream import Upstream, reading_request, recorded

SCRIPT = """
import time, uuid

PLANTED = {planted}

def predict(request):
    kind = request["kind"]
    if kind == "weights":
        return {{"result": {{"scores": [0.1, 0.5 + (1e-3 if PLANTED else 0), 0.3], "id": str(uuid.uuid4())}}}}
    if kind == "key":
        return {{"rows": [{{"label" if not PLANTED else "name": "cat"}}]}}
    if kind == "status" and PLANTED:
        raise ValueError("no")
    if kind == "slow":
        time.sleep(0.3 if PLANTED else 0.001)
    return {{"kind": kind, "created": time.time()}}
"""
STREAM = """
PLANTED = {planted}

def predict(request):
    for number in range(4 if PLANTED else 5):
        yield {{"number": number}}
"""
KINDS = ("weights", "key", "status", "slow", "none")


def package(folder: Path, script: str, planted: bool) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(script.format(planted=planted))
    return folder


def served(folder: Path, planted: bool) -> Iterator[Server]:
    for name, script in (("values", SCRIPT), ("stream", STREAM)):
        package(folder / name, script, planted)
    with serving(all_of(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay")


@pytest.fixture(scope="module")
def old(folder: Path) -> Iterator[Server]:
    yield from served(folder / "old", False)


@pytest.fixture(scope="module")
def new(folder: Path) -> Iterator[Server]:
    yield from served(folder / "new", True)


@pytest.fixture(scope="module")
def recording(old: Server, folder: Path) -> Path:
    path = folder / "old.rec"
    with recorded(old.url, path) as proxy, httpx.Client(base_url=proxy.url, timeout=30) as client:
        for _ in range(3):
            for kind in KINDS:
                client.post("/models/values/predict", json={"kind": kind}).raise_for_status()
        for accept in ("text/event-stream", "application/x-ndjson"):
            client.post("/models/stream/predict", json={}, headers={"Accept": accept}).raise_for_status()
        assert client.post("/models/values/predict", content=b"{").status_code >= 400
        proxy.stop()
    return path


def test_the_same_package_has_no_difference(old: Server, recording: Path) -> None:
    done = panglot("replay", str(recording), old.url, "--connections", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all 18 answers agree" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_every_planted_difference_is_found_and_named(new: Server, recording: Path, tmp_path: Path) -> None:
    report_page = tmp_path / "page.html"
    words = ("--speed", "50", "--slower", "1.5", "--json", "--html", str(report_page))
    done = panglot("replay", str(recording), new.url, *words)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    groups = {(group["kind"], group["place"]): group for group in report["groups"]}
    weights = groups["value", "/result/scores[*]"]
    assert weights["count"] == 3
    assert weights["gap"] == pytest.approx(1e-3)
    assert ("missing key", "/rows[*]/label") in groups
    assert ("new key", "/rows[*]/name") in groups
    assert groups["status", ""]["count"] == 3
    assert "5 parts of the stream against 4" in groups["parts", ""]["detail"]
    assert any("stage inference is slower" in sentence for sentence in report["slower"])
    assert (report["compared"], report["different"]) == (18, 11)
    text = report_page.read_text()
    assert "<script" not in text
    assert "/result/scores[*]" in text


def test_the_summary_says_how_far_and_how_often(new: Server, recording: Path) -> None:
    done = panglot("replay", str(recording), new.url, "--connections", "2")
    assert done.returncode == 1
    assert "/result/scores[*] differs by up to 0.001 in 3 of 18" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    masked = ("--mask", "/result/scores", "--mask", "/rows", "--json")
    kinds = {
        group["kind"] for group in json.loads(panglot("replay", str(recording), new.url, *masked).stdout)["groups"]
    }
    assert kinds == {"status", "parts"}


def test_a_package_is_served_for_the_occasion(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    write(path, made(b'{"kind": "none"}', b'{"kind": "none", "created": 0}', target="/predict"))
    done = panglot("replay", str(path), str(package(tmp_path / "values", SCRIPT, False)))
    assert done.returncode == 0, done.stdout + done.stderr


# Without a server of ours


def made(request: bytes, answer: bytes, kind: str = "application/json", target: str = "/", at: float = 0.0) -> Pair:
    headers = [("Content-Type", "application/json"), ("Authorization", "Bearer hunter2"), ("Connection", "close")]
    return Pair(
        RecordedRequest(headers, [], len(request), "", request, "POST", target),
        RecordedAnswer([("Content-Type", kind)], [], len(answer), "", answer, 200, "OK"),
        at=at,
        took=0.01,
    )


def write(path: Path, *pairs: Pair) -> None:
    recorder = Recorder(RecorderOptions(path))
    for pair in pairs:
        recorder.offer(pair, 0)
    recorder.close()


def test_credentials_are_given_anew(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def answer(sock: object) -> None:
        head = reading_request(sock)[0]  # type: ignore[arg-type]
        seen.append(head)
        status = b"200 OK" if b"X-Key: new" in head else b"401 No"
        sock.sendall(  # type: ignore[attr-defined]
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            % status
        )

    service = Upstream(answer)  # type: ignore[arg-type]
    try:
        path, url = tmp_path / "old.rec", f"http://127.0.0.1:{service.port}"
        write(path, made(b"{}", b"{}"))
        done = panglot("replay", str(path), url)
        assert done.returncode == 1
        assert "refused for want of credentials" in done.stdout
        assert b"hunter2" not in seen[0]
        assert panglot("replay", str(path), url, "--header", "X-Key: new").returncode == 0
    finally:
        service.close()


def test_a_server_that_is_gone_is_a_difference(tmp_path: Path) -> None:
    service = Upstream(lambda sock: None)
    try:
        path = tmp_path / "old.rec"
        write(path, made(b"{}", b"{}"))
        done = panglot("replay", str(path), f"http://127.0.0.1:{service.port}")
        assert done.returncode == 1
        assert "1 of them without an answer" in done.stdout
    finally:
        service.close()


def test_a_large_recording_is_replayed_in_constant_memory(tmp_path: Path) -> None:
    def echo(sock: object) -> None:
        while reading_request(sock)[0]:  # type: ignore[arg-type]
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")  # type: ignore[attr-defined]

    service = Upstream(echo)  # type: ignore[arg-type]
    try:
        path = tmp_path / "old.rec"
        # Half of a body is noise, so that the file is large too: 150 MB, and 1 GB in `make soak`.
        count = times(300, 2000)
        body = os.urandom(1 << 19) + bytes(1 << 19)
        recorder = Recorder(RecorderOptions(path))
        for number in range(count):
            wait_until(lambda: recorder.take(len(body)))
            recorder.offer(made(body, b"ok", "text/plain", at=number / 1000), len(body))
        recorder.close(600)
        assert path.stat().st_size > count << 19
        code = (
            # `ru_maxrss` would count what the process that started this one has in memory; VmHWM begins anew.
            "import re, sys\nsys.argv[0] = 'panglot'\nfrom panglot.cli import main\ntry:\n    main()\nfinally:\n"
            "    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
        )
        words = ["replay", str(path), f"http://127.0.0.1:{service.port}", "--connections", "4"]
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"all {count} answers agree" in done.stdout
        assert int(done.stderr.split()[-1]) < 250_000
    finally:
        service.close()


def test_pairs_are_sent_by_their_beginnings() -> None:
    pairs = [made(b"", b"", at=at) for at in (3.0, 1.0, 2.0)]
    assert [pair.at for pair in by_beginning(iter(pairs))] == [1.0, 2.0, 3.0]


def compared(left: bytes, right: bytes, kind: str = "application/json", rules: Rules | None = None) -> list[Found]:
    sides = [RecordedAnswer([("Content-Type", kind)], [], len(body), "", body, 200) for body in (left, right)]
    with Pixels() as pixels:
        return differences(sides[0], sides[1], rules or Rules(), pixels)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (b'{"a": 1, "b": 2.0}', b'{"b": 2, "a": 1}', "application/json"),
        (b"[0.1, 0.30000000000000004]", b"[0.1, 0.3]", "application/json"),
        (b'{"when": "2026-11-16T18:47:51Z"}', b'{"when": "2027-01-01T00:00:00.5+01:00"}', "application/json"),
        (
            b'{"created": 1, "id": "chatcmpl-abcdefgh1"}',
            b'{"created": 2, "id": "chatcmpl-12345678"}',
            "application/json",
        ),
        (b'data: {"a": 1}\n\ndata: [DONE]\n\n', b'data:{"a":1.0}\r\n\r\ndata: [DONE]\r\n\r\n', "text/event-stream"),
    ],
)
def test_answers_that_agree(left: bytes, right: bytes, kind: str) -> None:
    assert compared(left, right, kind) == []


@pytest.mark.parametrize(
    ("left", "right", "kind", "found"),
    [
        (b'{"a": 1}', b'{"a": "1"}', "application/json", ("dtype", "/a")),
        (b"[[1, 2]]", b"[[1, 2, 3]]", "application/json", ("shape", "[*][*]")),
        (b'{"a": null}', b'{"a": 0}', "application/json", ("dtype", "/a")),
        (b'{"a/b": "x"}', b'{"a/b": "y"}', "application/json", ("value", "/a~1b")),
        (b'data: {"a": 1}\n\n', b'data: {"a": 2}\n\n', "text/event-stream", ("value", "[*]/a")),
        (b"\x00\x01", b"\x00\x02", "application/octet-stream", ("bytes", "")),
        (b"hello", b"hallo", "text/plain", ("value", "/")),
    ],
)
def test_answers_that_differ(left: bytes, right: bytes, kind: str, found: tuple[str, str]) -> None:
    assert [(each.kind, each.place) for each in compared(left, right, kind)] == [found]


def test_rules_of_the_user() -> None:
    masked = Rules(masks=(JsonPath.parse("/seed"),))
    assert compared(b'{"seed": 1}', b'{"seed": 2}', rules=masked) == []
    assert compared(b'{"created": 1}', b'{"created": 2}', rules=Rules(mask_fleeting=False))


def test_pictures_are_compared_by_pixels() -> None:
    image = pytest.importorskip("PIL.Image")

    def picture(colour: tuple[int, int, int], **options: object) -> bytes:
        output = io.BytesIO()
        image.new("RGB", (20, 10), colour).save(output, "PNG", **options)
        return output.getvalue()

    assert compared(picture((1, 2, 3)), picture((1, 2, 3), compress_level=0), "image/png") == []
    (found,) = compared(picture((1, 2, 3)), picture((1, 2, 7)), "image/png")
    assert (found.kind, found.gap) == ("pixels", 4.0)
    assert compared(picture((1, 2, 3)), picture((1, 2, 7)), "image/png", Rules(pixel_gap=4)) == []
    (found,) = compared(picture((1, 2, 3)), b"\x89PNG damaged", "image/png")
    assert found.kind == "bytes"


def test_pictures_inside_of_json_are_compared_by_pixels_and_shown(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")

    def answer(colour: tuple[int, int, int], start: str = "", **options: object) -> bytes:
        output = io.BytesIO()
        image.new("RGB", (20, 10), colour).save(output, "PNG", **options)
        return json.dumps({"images": [{"data": start + base64.b64encode(output.getvalue()).decode()}]}).encode()

    assert compared(answer((1, 2, 3)), answer((1, 2, 3), compress_level=0)) == []
    changed = answer((1, 2, 7), "data:image/png;base64,")
    (noted,) = compared(answer((1, 2, 3)), changed)
    assert (noted.kind, noted.place, noted.gap) == ("pixels", "/images[*]/data", 4.0)
    findings = Findings()
    pair = made(b"{}", answer((1, 2, 3)))
    findings.add(pair, made(b"{}", changed).answer, 0.01, [noted])
    page.write(findings, tmp_path / "page.html", "old.rec", "here")
    assert (tmp_path / "page.html").read_text().count('<img alt="image/png') == 2
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600
