"""Who is measured: how each server is started, and where it answers."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import secret_files
from load import LENGTHS
from peers import MOSEC, PEERS, UnavailableError, install

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = HERE / "packages"


@dataclass(frozen=True)
class Contestant:
    name: str
    scenario: str
    command: tuple[str, ...]
    """`{port}` stands for the port, `{scratch}` for the folder of `secret_files`."""
    path: str
    ready: str | None = None
    """A route that answers 200 once the server is ready; without one the first right answer tells."""
    secret: str = ""
    """What a client shows as `Authorization: Bearer`, where the server wants it."""

    def command_on(self, port: int, scratch: Path) -> list[str]:
        return [part.replace("{port}", str(port)).replace("{scratch}", str(scratch)) for part in self.command]


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
        command = (str(MOSEC.environment / "bin" / "python"), str(HERE / "mosec_echo.py"), *flags, *address)
        return Contestant(name, scenario, command, "/inference")

    single = panglot_on("panglot-single", "json", "echo_single")

    def closed(name: str, *flags: str) -> Contestant:
        return dataclasses.replace(single, name=name, command=(*single.command, *flags), secret=secret_files.SECRET)

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
        single,
        closed("panglot-token", "--token-file", f"{{scratch}}/{secret_files.TOKEN}"),
        closed("panglot-keys", "--keys", f"{{scratch}}/{secret_files.KEYS}"),
        closed("panglot-limited-keys", "--keys", f"{{scratch}}/{secret_files.LIMITED_KEYS}"),
        mosec_on("mosec-single", "json", "--batch", "1"),
        mosec_on("mosec-single-orjson", "json", "--batch", "1", "--orjson"),
        dataclasses.replace(panglot_on("panglot-azureml", "json", "echo_azureml"), path="/score"),
        dataclasses.replace(panglot_on("panglot-paieas", "json", "echo_paieas"), path="/api/predict/echo"),
        dataclasses.replace(panglot_on("panglot-sagemaker", "json", "echo_sagemaker"), path="/invocations"),
        dataclasses.replace(
            panglot_on("panglot-torchserve", "json", "echo_torchserve"), path="/predictions/echo_torchserve"
        ),
        dataclasses.replace(panglot_on("panglot-truss", "json", "echo_truss"), path="/v1/models/model:predict"),
        panglot_on("panglot-hfendpoint", "inputs", "echo_hfendpoint"),
        dataclasses.replace(panglot_on("panglot-cog", "input", "echo_cog"), path="/predictions"),
        dataclasses.replace(panglot_on("panglot-runpod", "input", "echo_runpod"), path="/runsync"),
        Contestant("floor-raw", "raw", floor, "/raw"),
        panglot_on("panglot-raw", "raw", "echo_raw"),
        mosec_on("mosec-raw", "raw", "--batch", "1", "--raw"),
        *lengths,
        *of_peers(floor, panglot_on),
    ]


def of_peers(floor: tuple[str, ...], panglot_on: Callable[[str, str, str], Contestant]) -> list[Contestant]:
    """Other servers; those that want tensors or lists of lists beside the floor and Panglot with the same bodies."""
    tensors = panglot_on("panglot-tensor", "tensor", "echo_batch")
    path = "/v2/models/echo_batch/infer"
    return [
        Contestant("floor-listed", "listed", floor, "/"),
        Contestant("floor-tensor", "tensor", floor, "/"),
        dataclasses.replace(tensors, path=path),
        *(Contestant(peer.name, peer.scenario, peer.command, peer.path) for peer in PEERS),
    ]


def prepare(contestant: Contestant) -> None:
    """See that what the contestant needs is there; every peer gets its own environment on first use.

    Raises UnavailableError.
    """
    for peer in (MOSEC, *PEERS):
        if contestant.name.startswith(peer.name):
            install(peer, str(python_folder() / "python"))
    program = Path(contestant.command[0])
    if program.is_absolute() and not program.exists():
        raise UnavailableError(f"{program} does not exist")
