"""A Ray cluster of real processes: a head and nodes, in a network of their own where the machine allows that."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from support.environments import python_with
from support.ray_network import Network
from support.server import wait_until

VERSION = "2.60.0"
MARK = "TEST_RAY_NODE"
"""The variable that all processes of a node have, with its name."""
MEMORY = "80000000"
ATTEMPTS = 5
SETTINGS = {
    # By its storage a head knows the cluster again when it comes back.
    "RAY_gcs_storage": "rocksdb",
    "RAY_worker_niceness": "0",
    # Beside other tests a node may be slow. Ray would give it up; one that is gone is noticed as soon as ever.
    "RAY_health_check_timeout_ms": "30000",
    "RAY_agent_register_timeout_ms": "100000",
}
PORTS = (
    "node-manager-port", "object-manager-port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port",
    "runtime-env-agent-port", "metrics-export-port", "min-worker-port",
)  # fmt: skip


def command_of(pid: int) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).cmdline() or [""]
    return [""]


def ray_python() -> str:
    return python_with(f"ray-{VERSION}", f"ray[client]=={VERSION}")


class RayCluster:
    """A head without room for workers, and nodes. Whoever uses it is inside `network`."""

    def __init__(
        self, cpus: Sequence[int] = (2, 2), python: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        """Start all of it, with what Ray is told by variables besides."""
        self.python = python or ray_python()
        self.name = secrets.token_hex(4)
        self.network = Network()
        self.folder = tempfile.mkdtemp(prefix="pr-", dir="/tmp")
        self.cache = f"{self.folder}/cache"
        """Where nodes keep environments that are made there."""
        self.stored = tempfile.mkdtemp(prefix="pr-", dir="/dev/shm" if os.path.isdir("/dev/shm") else "/tmp")
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        """What whoever connects to it needs."""
        self.settings = {**SETTINGS, "RAY_gcs_storage_path": self.stored, **(settings or {})}
        self.address = f"{self.network.address(1)}:6399"
        self.cpus: dict[int, int] = {}
        self.restarted: list[subprocess.Popen[bytes]] = []
        """Processes of the head that came back: see `without`."""
        """The nodes that were started, with the workers for which each has room."""
        try:
            with self.network.entered():
                self.start_head()
                for number, count in enumerate(cpus, 2):
                    self.start(number, count)
        except BaseException:
            self.close()
            raise

    def start_head(self) -> None:
        """Start a head that knows of nothing yet."""
        self._started(1, "--head", "--port", "6399", "--include-dashboard", "false", "--num-cpus", "0",
                      "--ray-client-server-port", "10001")  # fmt: skip

    @contextlib.contextmanager
    def headless(self) -> Iterator[None]:
        """Be without the process that knows the cluster. It comes back with what it had stored."""
        with self.without(*self.commands(1, "/gcs_server")):
            yield

    @contextlib.contextmanager
    def without(self, *pids: int) -> Iterator[None]:
        """Be without some processes of the head's machine. The first comes back, as it was started."""
        process = psutil.Process(pids[0])
        command, environment = process.cmdline(), process.environ()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        yield
        with open(f"{self.folder}/head.log", "ab") as log, self.network.entered():
            back = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.restarted.append(back)

    def start(self, number: int, cpus: int) -> None:
        """Start a node, and wait for it. Each has a resource of its own, and the second what Ray takes for a GPU."""
        self.cpus[number] = cpus
        has = ("--num-cpus", str(cpus), "--num-gpus", str(int(number == 3)), "--resources", '{"lane": 1}')
        self._started(number, "--address", self.address, *has)

    def _started(self, number: int, *arguments: str) -> None:
        """Ray gives up a node whose parts take fifteen seconds to find each other, as they may beside other tests."""
        for _ in range(ATTEMPTS):
            # By the file Ray would take nodes of this machine for the head.
            Path(self.folder, str(number), "ray_current_cluster").unlink(missing_ok=True)
            if "--head" in arguments:
                shutil.rmtree(self.stored, ignore_errors=True)
            if self._run(number, *arguments).wait(100) == 0:
                return
            self.kill(number)
        raise AssertionError(self.log(number))

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be in its network, with all its nodes: a node that Ray gave up meanwhile is started again."""
        with self.network.entered():
            for number, cpus in self.cpus.items():
                if not self.commands(number, "/raylet"):
                    print(f"Ray has given up node {number}; it is started again\n{self.last_words(number)}")
                    self.kill(number)
                    self.start(number, cpus)
            yield

    def last_words(self, number: int) -> str:
        """The end of what the process of a node that Ray knows has written."""
        logs = sorted(
            Path(self.folder, str(number)).glob("session_*/logs/raylet.out"), key=lambda log: log.stat().st_mtime
        )
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs[-1:])

    def log(self, number: int) -> str:
        return Path(self.folder, f"start-{number}.log").read_text()

    @property
    def flags(self) -> tuple[str, ...]:
        return "--ray", self.address, "--ray-python", self.python

    def _run(self, number: int, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {name: text for name, text in os.environ.items() if not name.startswith(("RAY_", "PANGLOT_"))}
        base = 20000 + 200 * number
        environment |= {**self.environment, **self.settings, MARK: f"{self.name}-{number}"}
        environment["XDG_CACHE_HOME"] = self.cache
        # What nodes keep of packages goes with the cluster.
        environment["TMPDIR"] = self.folder
        # Beside other tests, the process that Ray starts for each of its clients takes its time.
        environment["RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S"] = "100"
        command = [str(Path(self.python).parent / "ray"), "start", *arguments]
        command += ["--node-ip-address", self.network.address(number), "--disable-usage-stats"]
        # Beside each other, nodes would choose the same ports.
        command += [f"--{name}={base + place}" for place, name in enumerate(PORTS)]
        command += [f"--max-worker-port={base + 199}"]
        # In one folder, nodes that start at the same time would take the same names.
        command += ["--temp-dir", f"{self.folder}/{number}"]
        with open(f"{self.folder}/start-{number}.log", "ab") as log, self.network.entered(number):
            return subprocess.Popen([*command, "--object-store-memory", MEMORY], env=environment, stdout=log,
                                    stderr=log, stdin=subprocess.DEVNULL)  # fmt: skip

    def node(self, number: int) -> str:
        """What processes of a node find in their environment."""
        return f"{self.name}-{number}"

    def processes(self, number: int | None = None) -> list[int]:
        """All processes of a node, or of the cluster, whoever started them."""
        wanted = f"{MARK}={self.name}-{'' if number is None else number}".encode()
        pids = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and wanted in Path("/proc", name, "environ").read_bytes():
                    pids.append(int(name))
        return pids

    def commands(self, number: int, ending: str) -> list[int]:
        """The processes of a node whose program ends so."""
        return [pid for pid in self.processes(number) if command_of(pid)[0].endswith(ending)]

    def kill(self, number: int | None = None) -> None:
        """End a node, or all, at once and without a word."""
        for _ in range(20):
            pids = self.processes(number)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not pids:
                return
        wait_until(lambda: not self.processes(number))

    def close(self) -> None:
        """End all of it."""
        self.kill()
        for process in self.restarted:
            process.wait(30)
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.stored, ignore_errors=True)
