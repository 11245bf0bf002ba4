"""Who is measured: how each server is started, and where it answers."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from load import LENGTHS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = HERE / "packages"
MOSEC_VENV = HERE.parent / ".venv-mosec"


class UnavailableError(Exception):
    """This contestant cannot run here; the text says why."""


@dataclass(frozen=True)
class Contestant:
    name: str
    scenario: str
    command: tuple[str, ...]
    """`{port}` stands for the port."""
    path: str
    ready: str | None = None
    """A route that answers 200 once the server is ready; without one the first right answer tells."""

    def command_on(self, port: int) -> list[str]:
        return [part.replace("{port}", str(port)) for part in self.command]


def python_folder() -> Path:
    """The folder of the Python that has uvicorn: the running one, else the repository's own."""
    running = Path(sys.executable).parent
    return running if (running / "uvicorn").exists() else ROOT / ".venv" / "bin"


def panglot_command(given: str | None) -> tuple[str, ...]:
    """The panglot to measure: the one given on the command line, else the one beside Python."""
    return tuple(shlex.split(given)) if given else (str(python_folder() / "panglot"),)


def contestants(panglot: tuple[str, ...]) -> list[Contestant]:
    python = str(python_folder() / "python")
    floor = (python, str(HERE / "floor.py"), "{port}")

    def panglot_on(name: str, scenario: str, package: str) -> Contestant:
        command = (*panglot, "serve", str(PACKAGES / package), "--host", "127.0.0.1", "--port", "{port}")
        return Contestant(name, scenario, command, "/predict", "/v2/health/ready")

    def mosec_on(name: str, scenario: str, *flags: str) -> Contestant:
        address = ("--address", "127.0.0.1", "--port", "{port}", "--log-level", "error")
        command = (str(MOSEC_VENV / "bin" / "python"), str(HERE / "mosec_echo.py"), *flags, *address)
        return Contestant(name, scenario, command, "/inference")

    lengths = [
        contestant
        for title in LENGTHS
        for contestant in (
            Contestant(f"floor {title}", f"length-{title}", floor, "/length"),
            panglot_on(f"panglot-batch {title}", f"length-{title}", "length_batch"),
            panglot_on(f"panglot-single {title}", f"length-{title}", "length_single"),
            mosec_on(f"mosec-batch {title}", f"length-{title}", "--batch", "32", "--length"),
            mosec_on(f"mosec-single {title}", f"length-{title}", "--batch", "1", "--length"),
        )
    ]
    return [
        Contestant("floor", "json", floor, "/"),
        panglot_on("panglot-batch", "json", "echo_batch"),
        mosec_on("mosec-batch", "json", "--batch", "32"),
        mosec_on("mosec-batch-orjson", "json", "--batch", "32", "--orjson"),
        panglot_on("panglot-single", "json", "echo_single"),
        mosec_on("mosec-single", "json", "--batch", "1"),
        mosec_on("mosec-single-orjson", "json", "--batch", "1", "--orjson"),
        Contestant("floor-raw", "raw", floor, "/raw"),
        panglot_on("panglot-raw", "raw", "echo_raw"),
        mosec_on("mosec-raw", "raw", "--batch", "1", "--raw"),
        *lengths,
    ]


def prepare(contestant: Contestant) -> None:
    """See that what the contestant needs is there; mosec gets its own venv on first use.

    Raises UnavailableError.
    """
    if contestant.name.startswith("mosec"):
        _prepare_mosec()
    program = Path(contestant.command[0])
    if program.is_absolute() and not program.exists():
        raise UnavailableError(f"{program} does not exist")


def _prepare_mosec() -> None:
    installed = MOSEC_VENV / "installed"
    if installed.exists():
        return
    print(f"installing mosec in {MOSEC_VENV} ...", file=sys.stderr, flush=True)
    pip = [
        str(MOSEC_VENV / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]
    steps = [
        [str(python_folder() / "python"), "-m", "venv", "--clear", str(MOSEC_VENV)],
        [*pip, "mosec", "orjson"],
    ]
    try:
        for step in steps:
            subprocess.run(step, capture_output=True, text=True, timeout=300, check=True)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"mosec could not be installed: {error.stderr.strip()[-400:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"mosec could not be installed: {error}") from error
    installed.touch()
