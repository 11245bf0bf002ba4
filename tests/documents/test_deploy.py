"""The files of the guide to deployment, used: its proxies before a server, its unit, its offline installation."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support import certificates, pages
from support.namespace import unshared
from support.ports import free_port
from support.programs import need
from support.server import ROOT, Server, serving, wait_until

GUIDE = pages.blocks((ROOT / "docs" / "guides" / "deploy.md").read_text())
TOKEN = "a-token-for-the-proxies"
OPEN = 45
"""What the unit may leave open: 0 is a service that can do nothing, 100 one that can do all; `OK` ends at 50."""
SCRIPT = """
import pathlib, time
from panglot import route

def predict(name: str):
    return {"text": f"Hello, {name}!"}

@route("/slowly")
def slowly(request):
    yield "first"
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
    yield "last"
"""


def block(language: str, word: str = "") -> str:
    """The one block of the guide in this language that has this word."""
    [found] = [block.text for block in GUIDE if block.language == language and word in block.text]
    return found


def changed(text: str, changes: dict[str, str]) -> str:
    """A block with the reader's own values in it. Each must be there."""
    for before, after in changes.items():
        assert before in text, f"the guide says no more: {before}"
        text = text.replace(before, after)
    return text


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.py").write_text(SCRIPT)
    with serving(package, env={"PANGLOT_TOKEN": TOKEN}) as running:
        yield running


def nginx(folder: Path, upstream: str, port: int) -> list[str]:
    cert, key = certificates.make(folder, "localhost", "DNS:localhost")
    values = {"127.0.0.1:8080": upstream, "443": f"127.0.0.1:{port}", "model.example.com": "localhost",
              "/etc/ssl/model.pem": str(cert), "/etc/ssl/model.key": str(key)}  # fmt: skip
    inside = changed(block("nginx"), values)
    around = f"pid {folder}/pid; error_log stderr; events {{}}\nhttp {{ access_log off; {inside} }}"
    (folder / "nginx.conf").write_text(around)
    return [need("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]


def caddy(folder: Path, upstream: str, port: int) -> list[str]:
    """With a certificate of ours where Caddy would get one."""
    cert, key = certificates.make(folder, "localhost", "DNS:localhost")
    name = f"https://localhost:{port} {{\n    bind 127.0.0.1\n    tls {cert} {key}"
    inside = changed(block("caddy"), {"127.0.0.1:8080": upstream, "model.example.com {": name})
    (folder / "Caddyfile").write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{inside}")
    return [need("caddy"), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextlib.contextmanager
def before(server: Server, proxy: object, folder: Path) -> Iterator[httpx.Client]:
    """A client that reaches the server through the proxy of the guide, over TLS."""
    port = free_port()
    command = proxy(folder, server.url.removeprefix("http://"), port)  # type: ignore[operator]
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    log = (folder / "proxy.log").open("w")
    running = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **homes})
    trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    try:
        with httpx.Client(base_url=f"https://localhost:{port}", verify=trusted, timeout=60) as client:
            wait_until(lambda: answers(client), 30, lambda: (folder / "proxy.log").read_text())
            yield client
    finally:
        running.terminate()
        running.wait(20)
        log.close()


def answers(client: httpx.Client) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return client.get("/v2/health/ready").status_code == 200
    return False


@pytest.mark.rest("needs nginx and Caddy")
@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_a_proxy_of_the_guide(proxy: object, server: Server, tmp_path: Path) -> None:
    with before(server, proxy, tmp_path) as client:
        assert client.post("/predict", json={"name": "Ada"}).status_code == 401
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        assert client.post("/predict", json={"name": "Ada"}).json() == {"text": "Hello, Ada!"}
        large = "a" * 5_000_000
        assert client.post("/predict", json={"name": large}).json() == {"text": f"Hello, {large}!"}
        with client.stream("POST", "/slowly", json={}, headers={"Accept": "application/x-ndjson"}) as answer:
            lines = answer.iter_lines()
            assert next(lines) == '"first"'  # The script waits for the file, so no proxy has collected the answer.
            (tmp_path / "package" / "go").touch()
            assert next(lines) == '"last"'


def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    (tmp_path / "panglot").write_text("#!/bin/sh\n")
    (tmp_path / "panglot").chmod(0o755)
    unit = tmp_path / "model.service"
    unit.write_text(changed(block("ini"), {"/opt/model/venv/bin/panglot": str(tmp_path / "panglot")}))
    done = subprocess.run([need("systemd-analyze"), "verify", str(unit)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "model.service" in line]
    assert (done.returncode, said) == (0, [])
    judge = [need("systemd-analyze"), "security", "--no-pager", "--offline=yes", f"--threshold={OPEN}", str(unit)]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.rest("downloads what Panglot needs")
@pytest.mark.timeout(400)
def test_a_machine_without_internet(tmp_path: Path) -> None:
    package = tmp_path / "greeter"
    package.mkdir()
    (package / "model.py").write_text("def predict(name: str):\n    return name\n")
    (package / "requirements.txt").write_text("packaging\n")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", str(ROOT)]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    download = changed(block("sh", "pip download"), {"make wheel\n": "", "pip ": f"{sys.executable} -m pip -q "})
    subprocess.run(re.sub(r"dist/\S+", str(wheel), download), shell=True, cwd=tmp_path, check=True)
    there = {"/opt/model/package": str(package), "/opt/model": str(tmp_path / "there"), "python3": sys.executable}
    install = changed(block("sh", "--no-index"), there)
    done = subprocess.run(
        [*unshared("ip link set lo up"), "sh", "-ec", install],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well" in done.stdout
