"""A network of machines: a namespace for the head and the test, one for each node, and cables that can be cut."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

from support.namespace import WAYS

CLONE_NEWNET = 0x40000000
HEAD = 1
"""The number of the machine that the head is on, and the test."""


class Network:
    """Namespaces that processes of ours hold open. Ray listens on every interface it finds.

    Where the machine allows no namespaces all is on its own network, and nothing can be cut.
    """

    def __init__(self) -> None:
        self.holder: subprocess.Popen[bytes] | None = None
        self._machines: dict[int, subprocess.Popen[bytes]] = {}
        if not shutil.which("unshare") or not shutil.which("ip") or os.geteuid() != 0:
            return
        switch = "ip link add switch type bridge; ip link set switch up"
        # By its way to anywhere, which leads nowhere, Ray learns the address of a machine.
        self.holder = held(f"{switch}; ip addr add {self._given(HEAD)} dev switch; ip route add default dev switch")
        if self.holder is not None:
            self._machines[HEAD] = self.holder

    def _given(self, number: int) -> str:
        return f"10.9.0.{number}/24"

    def address(self, number: int) -> str:
        return f"10.9.0.{number}" if self.holder is not None else own_address()

    @contextlib.contextmanager
    def entered(self, number: int = HEAD) -> Iterator[None]:
        """Have this thread, and whatever it starts, on a machine."""
        if self.holder is None:
            yield
            return
        if number not in self._machines:
            self._machines[number] = self._joined(number)
        with open("/proc/thread-self/ns/net") as before:
            _enter(self._machines[number].pid)
            try:
                yield
            finally:
                _set(before.fileno())

    def _joined(self, number: int) -> subprocess.Popen[bytes]:
        """A machine with a cable to the switch."""
        machine = held("")
        assert machine is not None
        self._machines[number] = machine
        with self.entered():
            run(f"ip link add cable{number} type veth peer name cable netns {machine.pid}")
            run(f"ip link set cable{number} master switch up")
        with self.entered(number):
            run(f"ip addr add {self._given(number)} dev cable")
            run("ip link set cable up")
            run("ip route add default dev cable")
        return machine

    def cut(self, number: int) -> None:
        """Cut the cable of a machine: packets are lost in both ways, and nobody is told."""
        with self.entered():
            run(f"ip link set cable{number} down")

    def mend(self, number: int) -> None:
        with self.entered():
            run(f"ip link set cable{number} up")

    def close(self) -> None:
        for machine in self._machines.values():
            machine.kill()
            machine.wait()
            assert machine.stdout is not None
            machine.stdout.close()


def held(set_up: str) -> subprocess.Popen[bytes] | None:
    """A process that holds a namespace open, once the given lines have run there; None where there can be none."""
    script = f"set -e; ip link set lo up; {set_up or ':'}; echo up; exec sleep 3600"
    holder = subprocess.Popen(["unshare", *WAYS[0], "sh", "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    if holder.stdout.readline() == b"up\n":
        return holder
    holder.wait()
    holder.stdout.close()
    return None


def run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def _enter(pid: int) -> None:
    with open(f"/proc/{pid}/ns/net") as inside:
        _set(inside.fileno())


def _set(namespace: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "this thread cannot enter a network namespace")


def own_address() -> str:
    """The address other machines know this one by; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
        sock.connect(("10.255.255.255", 1))
        return str(sock.getsockname()[0])
    return "127.0.0.1"
