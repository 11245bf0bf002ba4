"""Keys of clients, over HTTP and gRPC: what each opens, its limits, and a file that changes while the server runs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from panglot.web.access import key_file, key_watch
from panglot.web.access.hidden_headers import Credentials
from panglot.web.access.keys import Keys
from support.rpc import Rpc
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.two_fronts import FRONTS

FUNCTION = str(PACKAGES / "function")
ENTRIES = {
    "free": (),
    "metered": ("rate = 0.01", "burst = 2"),
    "narrow": ("at_once = 1",),
    "elsewhere": ('models = ["other"]',),
    "one-path": ('routes = ["/predict"]',),
    "over": ("expires = 2020-01-01T00:00:00Z",),
    "watcher": ('may = ["metrics", "pages"]',),
    "rpc": ("rate = 0.01", "burst = 5"),
    "bulk": ("rate = 0.01", "burst = 4"),
    "fleeting": (),
    "infers": ('may = ["infer"]',),
    "browses": ('may = ["infer", "jobs", "pages"]',),
}
SECRETS = {name: key_file.new_secret() for name in ENTRIES}


def content(*without: str) -> str:
    kept = [name for name in ENTRIES if name not in without]
    return "\n".join(key_file.written(name, SECRETS[name], ENTRIES[name]) for name in kept)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.write_text(content())
    return path


def hear(server: Server, said: str, mark: int) -> None:
    """Wait until every front has read the file and said so; all but the first say it to who debugs."""
    server.wait_count(said, int(FRONTS or 1), after=mark)


def rewrite(file: Path, text: str) -> None:
    """As editors do it, which empty the file first."""
    file.write_text(text)


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Server]:
    flags = (
        "--keys",
        str(file),
        "--grpc-port",
        "0",
        "--access-log",
        "1",
        "--log-format",
        "json",
        "--log-level",
        "debug",
    )
    with serving("slow_stream", *flags, ready=False) as running:
        # The end of `serving` looks at the metrics.
        running.token = SECRETS["watcher"]
        running.wait_ready()
        yield running
    assert not [name for name, secret in SECRETS.items() if secret in running.log]


def by(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


def ask(server: Server, name: str, value: object = None, path: str = "/predict") -> httpx.Response:
    return server.client.post(path, json=value if value is not None else {}, headers=by(name))


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def figures(server: Server, name: str) -> dict[str, object]:
    keys = server.client.get("/status.json", headers=by("watcher")).json()["keys"]
    return next(key for key in keys if key["name"] == name)


def test_a_key_opens_what_it_is_good_for(server: Server) -> None:
    assert ask(server, "free", {"a": 1}).json() == {"a": 1}
    assert code(server.client.post("/predict", json={})) == (401, "unauthorized")
    wrong = {"authorization": f"Bearer {key_file.new_secret()}"}
    assert code(server.client.post("/predict", json={}, headers=wrong)) == (401, "unauthorized")
    assert code(ask(server, "elsewhere")) == (403, "forbidden")
    assert code(ask(server, "watcher")) == (403, "forbidden")
    assert ask(server, "one-path").status_code == 200
    model = "/v2/models/slow_stream"
    assert server.client.get(model, headers=by("free")).status_code == 200
    for name in ("one-path", "elsewhere"):
        assert server.client.get(model, headers=by(name)).status_code == 403
    over = ask(server, "over")
    assert over.status_code == 401
    assert "has expired" in over.json()["error"]["message"]
    assert server.client.get("/metrics", headers=by("watcher")).status_code == 200
    assert server.client.get("/metrics", headers=by("free")).status_code == 403
    assert server.client.get("/v2/health/ready").status_code == 200


def test_more_requests_than_the_rate_get_429_with_the_headers_of_the_draft(server: Server) -> None:
    first, second, third = (ask(server, "metered") for _ in range(3))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.headers["ratelimit-policy"] == '"rate";q=2;w=200'
    assert first.headers["ratelimit"] == '"rate";r=1;t=100'
    assert code(third) == (429, "rate_limited")
    assert 1 <= int(third.headers["retry-after"]) <= 100
    assert third.headers["ratelimit"].startswith('"rate";r=0;t=')
    assert "ratelimit" not in ask(server, "free").headers


def test_large_bodies_behind_the_same_head_count_each_time(server: Server) -> None:
    body = json.dumps({"padding": "x" * 50_000})
    answers = [
        server.client.post("/predict", content=body, headers={**by("bulk"), "content-type": "application/json"})
        for _ in range(5)
    ]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    assert [answer.headers["ratelimit"][:10] for answer in answers[:4]] == [f'"rate";r={left}' for left in (3, 2, 1, 0)]
    assert figures(server, "bulk")["open"] == 0


def test_more_requests_at_once_get_429_until_one_is_answered(server: Server) -> None:
    endless = {"parts": 0, "size": 10, "pause": 0.1}
    with server.client.stream("POST", "/predict", json=endless, headers=by("narrow")) as first:
        assert first.headers["ratelimit"] == '"at-once";r=0'
        refused = ask(server, "narrow")
        assert code(refused) == (429, "too_many_at_once")
        assert refused.headers["retry-after"] == "1"
    # The client has disconnected: its request no longer counts.
    wait_until(lambda: ask(server, "narrow").status_code == 200)
    assert figures(server, "narrow")["open"] == 0


def test_names_are_in_the_log_the_metrics_and_the_status_and_secrets_nowhere(server: Server) -> None:
    assert [ask(server, "free").status_code for _ in range(3)] == [200] * 3
    line = json.loads(server.wait_log(r'.*"source": "access".*"key": "free".*')[0])
    assert line["key"] == "free"
    text = server.client.get("/metrics", headers=by("watcher")).text
    assert 'panglot_key_requests_total{key="free",outcome="admitted"}' in text
    assert figures(server, "free")["may"] == ["infer", "jobs"]
    pages = [text, server.client.get("/status.json", headers=by("watcher")).text]
    assert not [secret for secret in SECRETS.values() for page in pages if secret in page]


def test_a_browser_logs_in_with_a_key(server: Server) -> None:
    refused = server.client.get("/status", headers={"accept": "text/html"})
    assert (refused.status_code, "Log in" in refused.text) == (401, True)
    with server.new_client() as browser:
        assert browser.post("/login", headers=by("free")).status_code == 403
        assert browser.post("/login", headers=by("watcher")).status_code == 204
        assert browser.get("/status").status_code == 200
        origin = {"origin": server.url}
        assert browser.post("/predict", json={}, headers=origin).status_code == 403
        forged = {"cookie": "; ".join(f"{name}={value}x" for name, value in browser.cookies.items())}
        assert server.client.get("/status", headers=forged).status_code == 401


def test_jobs_are_for_keys_that_may_and_each_sees_its_own(server: Server) -> None:
    later = {"prefer": "respond-async"}
    assert code(server.client.post("/predict", json={}, headers=by("infers") | later)) == (403, "forbidden")
    made = server.client.post("/predict", json={"a": 1}, headers=by("free") | later)
    assert made.status_code == 202
    path = made.headers["location"]
    assert server.client.get(path, headers=by("free")).status_code == 200
    assert server.client.get(path, headers=by("infers")).status_code == 403
    assert server.client.get(path, headers=by("browses")).status_code == 404
    with server.new_client() as browser:
        assert browser.post("/login", headers=by("browses")).status_code == 204
        assert browser.get(path).status_code == 404


def test_grpc_calls_have_the_limits_of_their_key(server: Server) -> None:
    rpc = Rpc(server, token=SECRETS["rpc"])  # Reflection is two calls.
    request = rpc.kind("ModelMetadataRequest")(name="slow_stream")
    assert rpc.call("ModelMetadata", request).name == "slow_stream"
    infer = rpc.tensors("slow_stream", input=[b"{}"])
    statuses = []
    for _ in range(4):
        try:
            rpc.call("ModelInfer", infer)
            statuses.append(grpc.StatusCode.OK)
        except grpc.RpcError as error:
            statuses.append(error.code())
    assert statuses[2:] == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
    for name, refused in (("elsewhere", grpc.StatusCode.PERMISSION_DENIED), ("over", grpc.StatusCode.UNAUTHENTICATED)):
        for method, message in (("ModelInfer", infer), ("ModelMetadata", request)):
            with pytest.raises(grpc.RpcError) as caught:
                rpc.call(method, message, metadata=[("authorization", f"Bearer {SECRETS[name]}")])
            assert caught.value.code() == refused
    rpc.close()
    assert figures(server, "rpc")["open"] == 0


def test_a_revoked_key_ends_on_open_connections_while_others_go_on(server: Server, file: Path) -> None:
    """The file changes under load: no request of another key is lost, and none of the revoked one is served after."""
    answers: list[int] = []
    stop = threading.Event()

    def load() -> None:
        with httpx.Client(base_url=server.url, headers=by("free"), timeout=30) as client:
            while not stop.is_set():
                answers.append(client.post("/predict", json={}).status_code)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    rpc = Rpc(server, token=SECRETS["fleeting"])

    def over_grpc() -> grpc.StatusCode:
        """What becomes of a call, on a connection that remembers its key."""
        try:
            rpc.call("ServerMetadata")
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    try:
        mark = len(server.lines)
        assert [ask(server, "fleeting").status_code for _ in range(3)] == [200] * 3
        assert [over_grpc() for _ in range(3)] == [grpc.StatusCode.OK] * 3
        rewrite(file, "[[key]\n")
        hear(server, "keys of before stay in force", mark)
        assert ask(server, "fleeting").status_code == 200
        rewrite(file, content("fleeting"))
        hear(server, "0 added, 0 changed, 1 removed", mark)
        assert ask(server, "fleeting").status_code == 401
        assert over_grpc() == grpc.StatusCode.UNAUTHENTICATED
        rewrite(file, content())
        hear(server, "1 added, 0 changed, 0 removed", mark)
        assert ask(server, "fleeting").status_code == 200
        assert over_grpc() == grpc.StatusCode.OK
    finally:
        stop.set()
        rpc.close()
        for thread in threads:
            thread.join()
    assert set(answers) == {200}
    assert figures(server, "free")["open"] == 0


def test_a_file_that_is_being_written_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a look between the emptying and the writing would revoke all keys for a second."""
    looks = iter([(1, 1, 9, 1), (1, 1, 0, 2), (1, 1, 9, 3), (1, 1, 9, 3), (1, 1, 9, 3), None, None])
    seen: list[Any] = []
    read: list[Any] = []

    def stamp(file: str) -> Any:
        seen.append(next(looks))
        if seen[-1] is None:
            raise OSError("the end of the story")
        return seen[-1]

    monkeypatch.setattr(key_watch, "_stamp", stamp)
    monkeypatch.setattr(key_watch, "EVERY", 0.0)
    monkeypatch.setattr(key_watch, "SETTLED", 0.0)
    monkeypatch.setattr(key_file, "read", lambda file: read.append(seen[-1]) or [])
    with pytest.raises(OSError, match="the end"):
        asyncio.run(key_watch.KeyWatch("keys.toml", Keys([])).run())
    assert read == [(1, 1, 9, 3)]


def test_a_key_that_gets_a_rate_begins_with_all_of_it(server: Server, file: Path) -> None:
    assert [ask(server, "fleeting").status_code for _ in range(20)] == [200] * 20
    mark = len(server.lines)
    limited = key_file.written("fleeting", SECRETS["fleeting"], ("rate = 0.01", "burst = 2"))
    rewrite(file, f"{content('fleeting')}\n{limited}")
    hear(server, "0 added, 1 changed, 0 removed", mark)
    assert [ask(server, "fleeting").status_code for _ in range(3)] == [200, 200, 429]
    mark = len(server.lines)
    rewrite(file, content())
    hear(server, "0 added, 1 changed, 0 removed", mark)


def test_a_script_sees_no_key() -> None:
    secret = key_file.new_secret().encode()
    headers = [(b"authorization", b"Bearer x"), (b"x-copy", b"key " + secret), (b"x-other", b"pgk-short")]
    assert Credentials(b"", has_keys=True).without(headers) == [(b"x-other", b"pgk-short")]


# Wrong use

WRONG = {
    "no file": (("--keys", "/nowhere/keys.toml"), "cannot be read"),
    "beside --no-auth": (("--no-auth",), "leave one of them out"),
}


@pytest.mark.parametrize(("flags", "words"), WRONG.values(), ids=WRONG.keys())
def test_keys_that_cannot_be_used_end_the_start(flags: tuple[str, ...], words: str, file: Path) -> None:
    chosen = flags if "--keys" in flags else ("--keys", str(file), *flags)
    done = panglot("serve", FUNCTION, "--port", "0", *chosen)
    assert done.returncode == 3
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_key_new_prints_the_secret_once_and_stores_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    for name, more in (("a", ()), ("b", ("--rate", "5", "--models", "x,y", "--expires", "2030-01-31T00:00:00Z"))):
        done = panglot("key", "new", name, "--keys", str(path), *more)
        assert done.returncode == 0, done.stderr
        secret = done.stdout.strip()
        assert key_file.SECRET.fullmatch(secret.encode())
        assert secret not in path.read_text() + done.stderr
        assert key_file.read(str(path))[-1].digest == key_file.digest_of(secret.encode())
    assert key_file.read(str(path))[1].models == {"x", "y"}
    assert path.stat().st_mode & 0o77 == 0
    before = path.read_text()
    for flags, words in ((("a",), "two keys of this name"), (("c", "--rate", "0"), "above 0"), (("c d",), "a name is")):
        done = panglot("key", "new", flags[0], "--keys", str(path), *flags[1:])
        assert done.returncode == 3
        assert words in done.stderr
        assert not done.stdout
    assert path.read_text() == before


def test_a_secret_that_cannot_be_written_is_not_shown(tmp_path: Path) -> None:
    done = panglot("key", "new", "team-a", "--keys", str(tmp_path / "absent" / "keys.toml"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be written: No such file or directory (fix: name a file" in done.stderr
