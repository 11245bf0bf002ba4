"""The file: what is in it, what never is, and what becomes of files that are damaged or were made to hurt."""

from __future__ import annotations

import gzip
import json
import os
import resource
import stat
import time
from pathlib import Path

import pytest

from panglot.errors import StartError
from panglot.recording import recording
from panglot.recording.json_paths import JsonPath, replaced
from panglot.recording.recorder import Recorder
from panglot.recording.recording import Pair, RecordedAnswer, RecordedRequest, Recording
from panglot.recording.redaction import Redaction, is_secret
from panglot.recording.sampling import Sampler, SamplingRules, header_rule
from panglot.recording.sink import RecorderOptions
from support.server import panglot, wait_until

JSON = ("Content-Type", "application/json")


def pair(body: bytes = b'{"a": 1}', target: str = "/predict", *headers: tuple[str, str], status: int = 200) -> Pair:
    request = RecordedRequest([JSON, *headers], [], len(body), "", body, "POST", target)
    answer = RecordedAnswer([JSON], [], 2, "", b"[]", status, "OK")
    return Pair(request, answer, at=0.5, took=0.25)


def written(path: Path, *pairs: Pair, **options: object) -> Recorder:
    recorder = Recorder(RecorderOptions(path, **options))  # type: ignore[arg-type]
    for each in pairs:
        assert recorder.take(100)
        recorder.offer(each, 100)
    recorder.close()
    return recorder


def read(path: Path) -> list[Pair]:
    with Recording(path) as found:
        return list(found.pairs())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    written(path, pair(b"\x00\n\xff" * 50_000), pair())
    first, second = read(path)
    assert first.request.body == b"\x00\n\xff" * 50_000
    assert (second.number, second.request.method, second.request.target) == (2, "POST", "/predict")
    assert (second.answer.status, second.answer.body, second.at, second.took) == (200, b"[]", 0.5, 0.25)


def test_ten_lines_of_python_read_it(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    written(path, pair(), pair(b"x"))
    seen = []
    with gzip.open(path) as file:
        for line in iter(file.readline, b""):
            entry = json.loads(line)
            if "bodies" in entry:
                bodies = [file.read(size) for size in entry["bodies"]]
                file.read(1)
                seen.append((entry["request"]["target"], *bodies))
    assert seen == [("/predict", b'{"a": 1}', b"[]"), ("/predict", b"x", b"[]")]


def test_its_owner_alone_may_read_it_and_an_older_one_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    written(path, pair())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written(path, pair(), pair())
    assert sorted(len(read(file)) for file in tmp_path.iterdir()) == [1, 2]
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(StartError, match="exists and is no recording"):
        Recorder(RecorderOptions(other))
    assert other.read_text() == "mine"


SECRET_HEADERS = (
    "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "apikey",
    "X-Apig-AppCode", "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key", "X-Goog-Signature", "X-Secret",
    "AccessKeyId", "X-Session-Id",
)  # fmt: skip


def test_credentials_are_never_written(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    target = "/predict?top=3&api_key=hunter2&access_token=hunter2&sig=hunter2&X-Amz-Signature=hunter2"
    exchange = pair(b"{}", target, *((name, "hunter2") for name in SECRET_HEADERS))
    exchange.answer.headers += [("Set-Cookie", "hunter2"), ("Location", "/next?token=hunter2&page=1")]
    written(path, exchange)
    assert b"hunter2" not in gzip.decompress(path.read_bytes())
    (found,) = read(path)
    assert found.request.headers == [JSON]
    assert set(found.request.withheld) >= {name.lower() for name in SECRET_HEADERS} | {"?api_key"}
    assert found.request.target.startswith("/predict?top=3&api_key=[redacted]")
    assert found.answer.header("location") == "/next?token=[redacted]&page=1"


@pytest.mark.parametrize("name", ["Content-Type", "X-Request-Id", "X-Timeout-Ms", "Accept", "monkey", "X-Author"])
def test_ordinary_headers_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"user": {"name": "hunter2"}, "rows": [{"id": "hunter2"}, {"id": 2}]}', "application/json"),
        (b'{"user": {"name": "hunter2"}}', "text/plain"),
        (b'data: {"user": {"name": "hunter2"}}\n\ndata: [DONE]\n\n', "text/event-stream"),
        (b'{"user": {"name": "hunter2"}}\n{"user": {"name": "hunter2"}}\n', "application/x-ndjson"),
        (b'{"user": {"name": "hunter2"', "application/json"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_redact_names_is_not_written(tmp_path: Path, body: bytes, kind: str, packed: bool) -> None:
    path = tmp_path / "old.rec"
    exchange = pair(gzip.compress(body) if packed else body, "/", ("X-Customer", "hunter2"))
    exchange.request.headers[0] = ("Content-Type", kind)
    if packed:
        exchange.request.headers.append(("Content-Encoding", "gzip"))
    written(path, exchange, redact=("x-customer", "/user/name", "/rows[*]/id"))
    assert b"hunter2" not in gzip.decompress(path.read_bytes())
    (found,) = read(path)
    assert found.request.why
    assert b"hunter2" not in found.request.body
    if kind == "application/json" and body.endswith(b"}"):
        assert json.loads(found.request.body)["rows"] == [{"id": "[redacted]"}, {"id": "[redacted]"}]


def test_a_body_whose_encoding_is_unknown_is_left_out_where_places_are_redacted() -> None:
    exchange = pair(b"\x28\xb5\x2f\xfd", "/", ("Content-Encoding", "zstd"))
    Redaction(["/a"]).apply(exchange)
    assert exchange.request.body == b""
    assert "zstd" in exchange.request.why


def test_places_in_json() -> None:
    value = {"a": [{"id": 1, "x": {"id": 2}}], "b/c": 3, "id": 4}
    rules = [JsonPath.parse(text) for text in ("/**/id", "/b~1c")]
    assert replaced(value, rules, lambda old: None) == (
        {"a": [{"id": None, "x": {"id": None}}], "b/c": None, "id": None},
        4,
    )
    assert JsonPath.parse("/a[*]/*").matches(["a", 0, "id"])
    assert not JsonPath.parse("/a[1]/*").matches(["a", 0, "id"])
    with pytest.raises(ValueError, match="no path"):
        JsonPath.parse("user.name")


def test_a_full_disk_ends_the_recording_and_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    said: list[str] = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = Recorder(RecorderOptions(path), said.append)
    recorder.offer(pair(), 0)
    wait_until(lambda: recorder.pairs == 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1000, before[1]))
    try:
        assert recorder.take(5000)
        recorder.offer(pair(os.urandom(50_000)), 5000)
        wait_until(lambda: not recorder.recording)
        wait_until(lambda: recorder.take(recorder.options.memory), message=lambda: "memory was not given back")
        recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(said) == 1
    assert "the recording has ended" in said[0]
    assert "the service goes on" in said[0]
    assert len(read(path)) == 1


def test_rotation_by_size_retains_as_many_files_as_wanted(tmp_path: Path) -> None:
    recorder = Recorder(RecorderOptions(tmp_path / "old.rec", rotate_size=30_000, retain=2))
    for number in range(5):
        recorder.offer(pair(os.urandom(40_000)), 0)
        wait_until(lambda number=number: recorder.pairs == number + 1)
    recorder.close()
    assert [len(read(file)) for file in (*recorder.files, tmp_path / "old.rec")] == [1, 1, 0]
    assert len(list(tmp_path.iterdir())) == 3


def test_rotation_by_age(tmp_path: Path) -> None:
    recorder = Recorder(RecorderOptions(tmp_path / "old.rec", rotate_age=0.01))
    time.sleep(0.02)
    recorder.offer(pair(), 0)
    wait_until(lambda: recorder.files)
    recorder.close()
    assert len(read(recorder.files[0])) == 1


def test_memory_has_a_limit(tmp_path: Path) -> None:
    recorder = Recorder(RecorderOptions(tmp_path / "old.rec", memory=1000))
    assert recorder.take(900)
    assert not recorder.take(200)
    recorder.release(900)
    assert recorder.take(1000)
    recorder.close()


def test_sampling() -> None:
    every = Sampler(SamplingRules(every=3))
    assert [every.wants("/", [], 0.0) for _ in range(6)] == [True, False, False] * 2
    rate = Sampler(SamplingRules(per_second=2))
    assert [rate.wants("/", [], at) for at in (1.0, 1.0, 1.0, 1.1, 1.6)] == [True, True, False, False, True]
    route = Sampler(SamplingRules(paths=("/v1/*",), headers=(header_rule("X-Env: prod*"),)))
    assert route.wants("/v1/chat?a=1", [("x-env", "production")], 0.0)
    assert not route.wants("/v2", [("x-env", "production")], 0.0)
    assert not route.wants("/v1/chat", [("x-env", "test")], 0.0)
    failures = Sampler(SamplingRules(only_failures=True))
    assert [failures.wants_answer(status, False, 0.0) for status in (200, 500)] == [False, True]


# Damaged and hostile files


HEAD = recording.line({recording.MARK: 1})
GOOD = recording.encoded(pair())


def hostile(tmp_path: Path, content: bytes, packed: bool = True) -> Path:
    path = tmp_path / "hostile.rec"
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


def changed(**fields: object) -> bytes:
    head, _, rest = GOOD.partition(b"\n")
    return recording.line({**json.loads(head), **fields}) + rest


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"not json\n", b"[1]\n", b"{}\n", recording.line({recording.MARK: 99}), b"[" * 100_000 + b"\n",
        HEAD + b"{\n", HEAD + b"7\n", HEAD + b"[" * 200_000 + b"\n", HEAD + b"x" * (5 << 20),
        HEAD + changed(bodies=[-1, 2]), HEAD + changed(bodies=[1 << 62, 2]), HEAD + changed(bodies="many"),
        HEAD + changed(bodies=[1, 1]), HEAD + changed(bodies=[True, 2]), HEAD + changed(bodies=[]),
        HEAD + changed(request=None), HEAD + changed(at="yesterday"), HEAD + changed(pair=1e400),
        HEAD + changed(request={"method": "GET / HTTP/1.1\r\nX: y", "target": "/", "headers": [], "size": 0}),
        HEAD + changed(answer={"status": 200, "headers": [["a"]], "size": 0}),
        HEAD + changed(answer={"status": 200, "headers": 3, "size": 0}),
    ],
)  # fmt: skip
def test_a_hostile_recording_ends_with_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(StartError) as caught:
        read(hostile(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    done = panglot("replay", "--list", str(hostile(tmp_path, b"\x00" * 100, packed=False)))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "is no recording" in done.stderr
    done = panglot("replay", "--list", str(tmp_path / "nothing"))
    assert done.returncode == 3
    assert "No such file" in done.stderr


def test_a_recording_may_end_anywhere(tmp_path: Path) -> None:
    whole = recording.member(HEAD) + recording.member(GOOD) + recording.member(GOOD * 3)
    path = tmp_path / "cut.rec"
    counts = set()
    for length in range(len(recording.member(HEAD)), len(whole)):
        path.write_bytes(whole[:length])
        with Recording(path) as found:
            counts.add(len(list(found.pairs())))
    assert counts <= {0, 1, 2, 3, 4}
    assert max(counts) >= 1


def test_a_size_that_is_a_lie_costs_no_memory(tmp_path: Path) -> None:
    path = hostile(tmp_path, HEAD + changed(bodies=[recording.LARGEST_BODY, 0]))
    with Recording(path) as found:
        assert list(found.pairs()) == []
        assert found.truncated


def test_list_and_har(tmp_path: Path) -> None:
    path = tmp_path / "old.rec"
    written(path, pair(), pair(b"\xff\x00", status=500), service="http://127.0.0.1:9")
    done = panglot("replay", "--list", str(path))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert "POST /predict 500" in done.stdout
    rows = [json.loads(line) for line in panglot("replay", "--list", "--json", str(path)).stdout.splitlines()]
    assert [row["answer"]["status"] for row in rows] == [200, 500]
    assert panglot("replay", "--har", str(tmp_path / "old.har"), str(path)).returncode == 0
    log = json.loads((tmp_path / "old.har").read_text())["log"]
    assert [entry["request"]["url"] for entry in log["entries"]] == ["http://127.0.0.1:9/predict"] * 2
    assert log["entries"][1]["request"]["postData"]["encoding"] == "base64"
    assert stat.S_IMODE((tmp_path / "old.har").stat().st_mode) == 0o600


# Forms

MULTIPART = (
    b"--line\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n"
    b"--line\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
    b"\x89PNG\r\n--lin\r\n\xff\r\n"
    b"--line\r\nContent-Disposition: form-data; name=meta\r\n\r\n{\"user\": {\"name\": \"hunter2\"}, \"n\": 1}\r\n"
    b"--line\r\nContent-Disposition: form-data; name=\"customer\"\r\n\r\nhunter2\r\n--line--\r\n"
)  # fmt: skip


def form(body: bytes, kind: str, *redact: str) -> RecordedRequest:
    exchange = pair(body)
    exchange.request.headers[0] = ("Content-Type", kind)
    Redaction(redact).apply(exchange)
    return exchange.request


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (MULTIPART, "multipart/form-data; boundary=line"),
        (
            b"password=hunter2&n=1&meta=%7B%22user%22%3A+%7B%22name%22%3A+%22hunter2%22%7D%7D&customer=hunter2&c=a%26b",
            "application/x-www-form-urlencoded",
        ),
    ],
)
def test_secrets_in_forms_are_not_written(body: bytes, kind: str) -> None:
    request = form(body, kind, "/user/name", "/customer")
    assert b"hunter2" not in request.body
    assert request.why == "redacted"
    untouched = (
        (b"\x89PNG\r\n--lin\r\n\xff\r\n--line", b'"n": 1') if kind.startswith("multi") else (b"&n=1&", b"c=a%26b")
    )
    assert all(piece in request.body for piece in untouched)
    # Without rules a field whose name says password is still left out, and other fields are not.
    request = form(body, kind)
    assert request.body.count(b"hunter2") == body.count(b"hunter2") - 1


@pytest.mark.parametrize("boundary", ["; boundary=other", ""])
def test_a_form_that_cannot_be_read_is_left_out(boundary: str) -> None:
    request = form(MULTIPART, "multipart/form-data" + boundary)
    assert request.body == b""
    assert "could not look into it" in request.why


def test_a_form_without_secrets_is_written_as_it_came() -> None:
    body = MULTIPART.replace(b"password", b"language")
    assert form(body, 'multipart/form-data; boundary="line"').body == body
