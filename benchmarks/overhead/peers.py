"""Other servers, each in an environment of its own that is made on first use; `run.py --peers` measures them too."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent
PIP_SECONDS = 600


class UnavailableError(Exception):
    """This contestant cannot run here; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A server: what to install for it, what it is sent, and where."""

    name: str
    packages: tuple[str, ...]
    scenario: str
    path: str

    @property
    def environment(self) -> Path:
        return ENVIRONMENTS / f".venv-{self.name}"

    @property
    def command(self) -> tuple[str, ...]:
        """`{port}` stands for the port."""
        script = HERE / "peers" / f"{self.name.partition('-')[0]}_echo.py"
        return (str(self.environment / "bin" / "python"), str(script), "{port}")


MOSEC = Peer("mosec", ("mosec", "orjson"), "json", "/inference")
PEERS = (
    Peer("litserve", ("litserve",), "json", "/predict"),
    Peer("bentoml", ("bentoml",), "listed", "/predict"),
    Peer("mlserver", ("mlserver", "uvloop<0.22"), "tensor", "/v2/models/echo/infer"),
    Peer("pytriton", ("nvidia-pytriton",), "tensor", "/v2/models/echo/infer"),
    Peer("ray-serve", ("ray[serve]",), "json", "/"),
)


def install(peer: Peer, python: str) -> None:
    """Make the peer's environment, unless it is there. Raises UnavailableError."""
    installed = peer.environment / "installed"
    if installed.exists():
        return
    print(f"installing {peer.name} in {peer.environment} ...", file=sys.stderr, flush=True)
    pip = [str(peer.environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    steps = [[python, "-m", "venv", "--clear", str(peer.environment)], [*pip, *peer.packages]]
    try:
        for step in steps:
            subprocess.run(step, capture_output=True, text=True, timeout=PIP_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"{peer.name} could not be installed: {error.stderr.strip()[-400:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{peer.name} could not be installed: {error}") from error
    installed.touch()
