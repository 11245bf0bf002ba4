"""Files of a model that are named by address: fetched at load, within the rules for addresses, and checked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.evals import GOOD, ask, package, result, returning, single
from support.scripted import Scripted, endless, redirect, scripted, simple
from support.server import panglot, serving, wait_until

WEIGHTS = b"the weights of a net"
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
BLOCKS = b"x" * (4 << 20) + b"y"
"""What has two blocks for Qiniu's hash."""

READS = returning(
    GOOD % "model", "", "{name: open(path).read() for name, path in configs['model_files'].items()}, 0, ''"
)


def etag(*blocks: bytes) -> str:
    """Qiniu's hash, as its documentation describes it."""
    digests = [hashlib.sha1(block).digest() for block in blocks]
    whole = b"\x16" + digests[0] if len(digests) == 1 else b"\x96" + hashlib.sha1(b"".join(digests)).digest()
    return base64.urlsafe_b64encode(whole).decode()


def archive() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        about = tarfile.TarInfo("net.params")
        about.size = len(WEIGHTS)
        tar.addfile(about, io.BytesIO(WEIGHTS))
    return held.getvalue()


@pytest.fixture
def remote() -> Iterator[Scripted]:
    answers = {
        "/net.params": simple(WEIGHTS),
        "/net.params?token=secret": simple(WEIGHTS),
        "/moved": redirect("/net.params"),
        "/until_close": b"HTTP/1.1 200 OK\r\n\r\n" + WEIGHTS,
        "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + WEIGHTS,
        "/inside": redirect("http://10.0.0.1/net.params"),
        "/endless": endless,
        "/model.tar": simple(archive()),
        "/blocks": simple(BLOCKS),
        "/a%20b.params": simple(WEIGHTS),
    }
    with scripted(answers) as running:
        yield running


def toml(address: str, more: str = "") -> str:
    return f'[evals]\nmodel_files = {{ "net.params" = "{address}" }}\n{more}\n'


GIVEN = {
    "plain": ("/net.params", ""),
    "sha256": ("/net.params", "#sha256=" + SHA256),
    "in capitals": ("/net.params", "#sha256=" + SHA256.upper()),
    "sha1": ("/net.params", "#sha1=" + hashlib.sha1(WEIGHTS).hexdigest()),
    "md5": ("/net.params", "#md5=" + hashlib.md5(WEIGHTS).hexdigest()),
    "etag": ("/net.params", "#etag=" + etag(WEIGHTS)),
    "redirected": ("/moved", "#sha256=" + SHA256),
}


@pytest.mark.document("evals.09")
def test_files_are_fetched_and_checked(tmp_path: Path, remote: Scripted) -> None:
    files = "".join(f'"{name}" = "{remote.url(path)}{fragment}"\n' for name, (path, fragment) in GIVEN.items())
    folder = package(tmp_path, READS, panglot__toml="[evals.model_files]\n" + files)
    with serving(folder, "--url-allow", remote.host) as server:
        assert result(server, single()) == dict.fromkeys(GIVEN, WEIGHTS.decode())


def test_qiniu_s_hash_of_several_blocks(tmp_path: Path, remote: Scripted) -> None:
    script = returning(GOOD % "model", "", "len(open(configs['model_files']['net.params']).read()), 0, ''")
    address = remote.url("/blocks") + "#etag=" + etag(BLOCKS[: 4 << 20], BLOCKS[4 << 20 :])
    with serving(package(tmp_path, script, panglot__toml=toml(address)), "--url-allow", remote.host) as server:
        assert result(server, single()) == len(BLOCKS)


def test_archives_and_custom_files_too(tmp_path: Path, remote: Scripted) -> None:
    release = {
        "tar_file": f"proxy_{remote.url('/model.tar')}",
        "custom_files": {"labels": remote.url("/net.params") + "#sha256=" + SHA256},
    }
    both = "{**configs['model_files'], **configs['custom_files']}"
    folder = package(tmp_path, READS.replace("configs['model_files']", both))
    (folder / "serving-eval.conf").write_text(json.dumps({"release": release}))
    with serving(folder, "--url-allow", remote.host) as server:
        assert result(server, single()) == dict.fromkeys(("net.params", "labels"), WEIGHTS.decode())


REFUSED = {
    "another file": ("/net.params#sha256=" + "0" * 64, f"its sha256 is {SHA256}", "correct the hash"),
    "nothing there": ("/nothing", "the answer has status 404", "download it"),
    "cut short": ("/short", "the connection ended before the file was complete", "download it"),
    "of no known length": ("/until_close", "the connection ended before the file was complete", "download it"),
    "into the network": ("/inside", "10.0.0.1 is not, or not only, in the public internet", "--url-allow"),
    "too large": ("/endless", "it has more than 1048576 bytes", "--model-file-bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_fails_says_why(tmp_path: Path, remote: Scripted, name: str) -> None:
    path, problem, fix = REFUSED[name]
    folder = package(tmp_path, READS, panglot__toml=toml(remote.url(path)))
    flags = ("--url-allow", remote.host, "--model-file-bytes", "1M", "--port", "0")
    done = panglot("serve", str(folder), *flags)
    assert done.returncode == 3
    assert "net.params" in done.stderr
    assert problem in done.stderr
    assert fix in done.stderr


def test_hosts_that_are_not_public_need_leave(tmp_path: Path, remote: Scripted) -> None:
    folder = package(tmp_path, READS, panglot__toml=toml(remote.url("/net.params")))
    done = panglot("serve", str(folder), "--port", "0")
    assert done.returncode == 3
    assert f"--url-allow {remote.host} would let it" in done.stderr
    assert remote.seen == 0


BAD = {
    "a hash of another length": ("http://example.com/x#sha256=12", "this is no hash"),
    "an unknown hash": ("http://example.com/x#crc=12", "write one of #sha256=..., #sha1=..., #md5=..., #etag=..."),
    "a user's name": ("http://me:secret@example.com/x", "the address holds a user's name"),
    "a bucket nobody knows": ("qiniu:///bucket/net.params", 'qiniu_domains = { "bucket" = "https://..." }'),
    "no bucket": ("qiniu://bucket", "expected qiniu:///bucket/key"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_addresses_are_known_before_loading(tmp_path: Path, name: str) -> None:
    address, problem = BAD[name]
    done = panglot("serve", str(package(tmp_path, READS, panglot__toml=toml(address))), "--port", "0")
    assert done.returncode == 3
    assert problem in done.stderr
    assert "loading" not in done.stderr


def test_a_worker_without_a_network_fetches_nothing(tmp_path: Path) -> None:
    folder = package(tmp_path, READS, panglot__toml=toml("http://example.com/x"))
    done = panglot("serve", str(folder), "--worker-net", "none", "--port", "0")
    assert done.returncode == 3
    assert "cannot be fetched with --worker-net none" in done.stderr


@pytest.mark.parametrize(
    "address", ["qiniu:///bucket/a b.params", "qiniu://z0/bucket/a b.params", "qiniu://bucket/a b.params"]
)
def test_a_public_bucket(tmp_path: Path, remote: Scripted, address: str) -> None:
    more = f'qiniu_domains = {{ bucket = "{remote.host}" }}'
    folder = package(tmp_path, READS, panglot__toml=toml(address, more))
    with serving(folder, "--url-allow", remote.host) as server:
        assert result(server, single()) == {"net.params": WEIGHTS.decode()}


def test_a_private_bucket(tmp_path: Path) -> None:
    """Its addresses are signed with the owner's keys, and good for an hour."""

    class Everything(dict[str, bytes]):
        def get(self, path: str, default: bytes = b"") -> bytes:  # type: ignore[override]
            return simple(WEIGHTS)

    with scripted(Everything()) as remote:
        more = f'qiniu_domains = {{ bucket = "http://{remote.host}/" }}'
        folder = package(tmp_path, READS, panglot__toml=toml("qiniu:///bucket/net.params", more))
        (folder / "serving-eval.conf").write_text(json.dumps({"owner": {"uid": 1, "ak": "access", "sk": "hidden"}}))
        with serving(folder, "--url-allow", remote.host) as server:
            assert result(server, single()) == {"net.params": WEIGHTS.decode()}
            assert "hidden" not in server.client.get("/configs").text
        assert "hidden" not in server.log
        asked = remote.requests[0].split(b" ")[1].decode()
        match = re.fullmatch(r"(/net\.params\?e=(\d+))&token=access:(.*)", asked)
        assert match
        signature = hmac.new(b"hidden", f"http://{remote.host}{match[1]}".encode(), hashlib.sha1).digest()
        assert match[3] == base64.urlsafe_b64encode(signature).decode()


@pytest.mark.one_front("each front fetches the files for its own workers")
def test_a_server_fetches_once(tmp_path: Path, remote: Scripted) -> None:
    """Workers that come later, or again, have copies of the same file. Secrets in addresses are not shown."""
    script = READS.replace("return [", "if reqs[0]['params'].get('die'): __import__('os')._exit(1)\n    return [")
    text = "workers = 2\n" + toml(remote.url("/net.params?token=secret"))
    with serving(package(tmp_path, script, panglot__toml=text), "--url-allow", remote.host) as server:
        server.wait_log("worker 1 ready")
        assert ask(server, single(params={"die": True})).status_code == 500
        wait_until(lambda: len(server.workers()) == 2)
        assert result(server, single()) == {"net.params": WEIGHTS.decode()}
        assert remote.seen == 1
        assert "secret" not in server.client.get("/configs").text
    assert "secret" not in server.log
