"""The servers side by side: Panglot's own engine, Panglot with its worker on a Ray cluster, and Ray Serve."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from contestants import panglot_command, python_folder  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from peers import PEERS, install  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

from support.ray_cluster import RayCluster  # noqa: E402

LOCAL, NODES, SERVE = "local", "ray", "ray-serve"
SCRIPT = """\
import time


class Model:
    def predict_batch(self, items):
        time.sleep({seconds})
        return [len(item) for item in items]
"""
INGRESS = next(peer for peer in PEERS if peer.name == SERVE)


@dataclass(frozen=True)
class Started:
    """A server that answers."""

    port: int
    process: subprocess.Popen[bytes]
    cluster: RayCluster | None = None

    def meter(self) -> TreesMeter:
        """Counts CPU time from now on: of the server's processes and, on nodes, of agents and workers."""
        return TreesMeter([self.process.pid, *(agents(self.cluster) if self.cluster is not None else ())])


class TreesMeter:
    """CPU seconds of several process trees. Ray's own processes beside an agent are not in any of them."""

    def __init__(self, roots: list[int]) -> None:
        self._meters = [CpuMeter(root) for root in roots]

    def seconds(self) -> float:
        return sum(meter.read().seconds for meter in self._meters)


def agents(cluster: RayCluster) -> list[int]:
    return [pid for pid in cluster.processes() if "Agent" in command_of(pid)]


def workers(cluster: RayCluster, number: int | None = None) -> list[int]:
    return [pid for pid in cluster.processes(number) if "panglot_worker.life.loop" in command_of(pid)]


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


def package(scratch: Path, milliseconds: float) -> Path:
    """The script, which sleeps in each call, as for a GPU, and answers with the length of each body."""
    folder = scratch / f"sleep_{milliseconds:g}"
    folder.mkdir(exist_ok=True)
    text = SCRIPT.format(seconds=milliseconds / 1000)
    (folder / "model.py").write_text(text if milliseconds else text.replace("        time.sleep(0.0)\n", ""))
    return folder


@contextlib.contextmanager
def serving(
    kind: str, milliseconds: float, scratch: Path, cluster: RayCluster, flags: tuple[str, ...] = ()
) -> Iterator[Started]:
    """A server for the length of the block. It is inside the cluster's network, wherever its workers are."""
    port = free_port()
    if kind == SERVE:
        install(INGRESS, str(python_folder() / "python"))
        python = str(INGRESS.environment / "bin" / "python")
        command = [python, str(HERE / "serve_ingress.py"), str(port), f"{milliseconds:g}"]
        path, method = "/", "POST"
    else:
        command = [*panglot_command(None), "serve", str(package(scratch, milliseconds)), "--port", str(port)]
        command += ["--max-batch", "32", *flags, *(cluster.flags if kind == NODES else ("--share-from", "0"))]
        path, method = "/v2/health/ready", "GET"
    with running(command, scratch / f"{kind}.log", scratch) as process:
        await_status(process, port, method, path, None)
        yield Started(port, process, cluster if kind == NODES else None)


@contextlib.contextmanager
def one_cluster() -> Iterator[RayCluster]:
    """A head and two nodes, in a network of their own where the machine allows that; this process is in it."""
    cluster = RayCluster()
    os.environ.update(cluster.environment)
    try:
        with cluster.network.entered():
            yield cluster
    finally:
        cluster.close()
