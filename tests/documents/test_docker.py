"""The image that `panglot package` describes, built and run by a Docker daemon, with the limits of its compose file."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from support.ports import free_port
from support.programs import need
from support.server import panglot, wait_until

BASE = "python:3.11-slim"
TOKEN = "a-token-for-the-image"
pytestmark = [pytest.mark.rest("needs a Docker daemon, the image python:3.11-slim and a package index")]


def docker(*words: str, fails: bool = False) -> str:
    """What a docker command says, on both of its channels."""
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    done = subprocess.run([need("docker"), *words], capture_output=True, text=True, env=environment, check=False)
    assert fails or done.returncode == 0, f"docker {' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package with its files, whose image is built."""
    if subprocess.run([need("docker"), "image", "inspect", BASE], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Docker daemon that has the image {BASE}")
    folder = tmp_path_factory.mktemp("docker") / "greeter"
    folder.mkdir()
    (folder / "model.py").write_text(
        'import tomli_w\n\ndef predict(name: str):\n    return {"text": f"Hello, {name}!"}\n'
    )
    (folder / "requirements.txt").write_text("tomli-w==1.2.0\n")
    (folder / ".env").write_text("SECRET=1\n")
    assert panglot("package", str(folder), "--name", "panglot-test-greeter").returncode == 0
    name = "panglot-test-greeter"
    docker("build", "--network", "host", "-f", str(folder / "deploy" / "Dockerfile"), "-t", name, str(folder))
    yield folder
    docker("image", "rm", "-f", name)


@contextlib.contextmanager
def running(*options: str) -> Iterator[tuple[str, httpx.Client]]:
    """A container of the image that is ready, and a client of it. When it is stopped, it must end well."""
    port = free_port()
    given = ("-e", f"PANGLOT_TOKEN={TOKEN}", "-e", f"PANGLOT_PORT={port}")
    name = docker("run", "-d", "--init", "--network", "host", *given, *options, "panglot-test-greeter").strip()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            wait_until(lambda: answers(client), 60, lambda: docker("logs", name, fails=True))
            yield name, client
        docker("stop", "-t", "40", name)
        assert docker("inspect", "-f", "{{.State.ExitCode}}", name).strip() == "0"
    finally:
        docker("rm", "-f", name, fails=True)


def answers(client: httpx.Client) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return client.get("/v2/health/ready").status_code == 200
    return False


@pytest.mark.timeout(600)
def test_the_image_serves_and_stops(package: Path) -> None:
    with running() as (name, client):
        assert client.post("/predict", json={"name": "Ada"}).status_code == 401
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        assert client.post("/predict", json={"name": "Ada"}).json() == {"text": "Hello, Ada!"}
        assert docker("exec", name, "id", "-u").strip() == "10001"
        inside = docker("exec", name, "ls", "-a", "/package").split()
        assert "model.py" in inside
        assert ".env" not in inside, "the build reads Dockerfile.dockerignore"
        health = ("inspect", "-f", "{{.State.Health.Status}}", name)
        wait_until(lambda: docker(*health).strip() == "healthy", 60)


@pytest.mark.timeout(600)
def test_without_a_token_the_container_ends_and_says_why(package: Path) -> None:
    assert "no token is set" in docker("run", "--rm", "--network", "host", "panglot-test-greeter", fails=True)


@pytest.mark.timeout(600)
def test_what_the_compose_file_forbids_is_not_needed(package: Path) -> None:
    service = yaml.safe_load((package / "deploy" / "compose.yaml").read_text())["services"]["panglot-test-greeter"]
    assert service["read_only"]
    limits = service["deploy"]["resources"]["limits"]
    options = ["--read-only", "--cpus", limits["cpus"], "--memory", limits["memory"].lower()]
    options += [word for path in service["tmpfs"] for word in ("--tmpfs", path)]
    options += [word for right in service["cap_drop"] for word in ("--cap-drop", right)]
    options += [word for option in service["security_opt"] for word in ("--security-opt", option)]
    with running(*options) as (_, client):
        large = "a" * 3_000_000
        answer = client.post("/predict", json={"name": large}, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.json() == {"text": f"Hello, {large}!"}
