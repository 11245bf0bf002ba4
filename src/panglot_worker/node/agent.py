"""The agent: a small actor on a node that starts workers there and gives each a socket of its own to the front.

Ray sends it by value, so nothing is installed on the nodes. The front opens connections to it. On each it proves that
it knows the secret of the server, and names a role: `control` (JSON lines; when it ends, the agent and its workers
end), `files` (a package travels), `output` (of a worker), `data` (calls; it becomes the worker's own socket). Where
there is a certificate, all that follows is encrypted, on `data` by the worker itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import time
from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.line import encryption
from panglot_worker.node.handshake import LONGEST, PATIENCE, as_agent, heard, message, number, proof, receive, tune
from panglot_worker.node.shelf import SILENCE, Shelf
from panglot_worker.node.worker_process import WorkerProcess

ALONE = 30.0
"""Seconds without a control connection after which an agent ends."""
STRANGERS, OF_ONE_ADDRESS = 64, 16
"""Connections that may be in the handshake at the same time; and of one address."""
NEXT_TRY = 0.1
"""Seconds until the next try after a connection could not be taken, for example for lack of descriptors."""
LOOK = 1.0
"""Seconds between two looks at the memory of workers."""


class NodeAgent:
    """One placement on a node. It runs on the actor's event loop, except for transfers of files."""

    def __init__(self, secret: bytes, ports: Tuple[int, int], certificate: str = "") -> None:
        self.secret = secret
        self.ports = ports
        self.certificate = certificate
        self.tls = encryption.context(certificate, is_node=True) if certificate else None
        self.workers: Dict[int, WorkerProcess] = {}
        self.outputs: Dict[int, Any] = {}
        """By generation: a task that makes the connection for the output of a worker that is not started yet."""
        self.launches: Dict[int, Any] = {}
        """By generation: a future of the order that tells how to start the worker."""
        self.retained: Dict[int, int] = {}
        """Memory that outlives workers, as open files by the number of the worker: its successor here gets the same."""
        self.control: Optional[asyncio.StreamWriter] = None
        self.shelf: Optional[Shelf] = None
        self.strangers: Dict[Any, str] = {}
        """The tasks of connections that have proven nothing yet, the oldest first, and the address of each."""
        self.tasks: Any = set()

    async def open(self, address: str, node: str) -> Dict[str, Any]:
        """Listen on the node, and say where. Raises OSError when no port is free."""
        loop = asyncio.get_running_loop()
        self.gone = loop.create_future()
        listener = listen(address, self.ports)
        self.shelf = await loop.run_in_executor(None, Shelf)
        self._keep(self._accept(listener))
        self._keep(self._look_after())
        # The front may have died after it asked for this agent: then nobody will ever end it.
        loop.call_later(ALONE, self._leave_if_alone)
        loop.run_in_executor(None, self.shelf.sweep, time.time())
        return {
            "address": address,
            "port": listener.getsockname()[1],
            "node": node,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "runs": os.path.join(self.shelf.base, "runs"),
        }

    async def until_gone(self) -> None:
        """Never return: the call fails when the actor dies, and tells the driver why."""
        await self.gone

    def _keep(self, coroutine: Any) -> "asyncio.Task[None]":
        task: "asyncio.Task[None]" = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _leave_if_alone(self) -> None:
        if self.control is None:
            os._exit(0)

    # Connections

    async def _accept(self, listener: socket.socket) -> None:
        """Take connections for ever. Where too many have proven nothing yet, the oldest of them is closed."""
        while True:
            try:
                conn, address = await asyncio.get_running_loop().sock_accept(listener)
            # Probably out of descriptors: closing a stranger's connection frees one.
            except OSError:
                self._drop_oldest(list(self.strangers))
                await asyncio.sleep(NEXT_TRY)
                continue
            # Newcomers push out the oldest: strangers that never speak must not keep the front out.
            self._free_slot(address[0])
            task = self._keep(self._greet(conn))
            self.strangers[task] = address[0]
            # A task that is cancelled before its first step has no chance to close anything.
            task.add_done_callback(functools.partial(close_if_cancelled, conn))
            # `sock_accept` does not give way while further connections wait, and nothing else would run.
            await asyncio.sleep(0)

    def _free_slot(self, address: str) -> None:
        neighbours = [task for task, other in self.strangers.items() if other == address]
        if len(neighbours) >= OF_ONE_ADDRESS:
            self._drop_oldest(neighbours)
        elif len(self.strangers) >= STRANGERS:
            self._drop_oldest(list(self.strangers))

    def _drop_oldest(self, tasks: Any) -> None:
        if tasks:
            self.strangers.pop(tasks[0])
            tasks[0].cancel()

    async def _greet(self, conn: socket.socket) -> None:
        """Shake hands with a connection, then give it to its user."""
        try:
            conn.setblocking(False)
            tune(conn)
            # `wait_for` may lose a cancellation that comes with the result: then a peer with a proof stays, rightly.
            said = await asyncio.wait_for(self._introduced(conn), PATIENCE)  # noqa: TID251
        except (OSError, ValueError, asyncio.TimeoutError):
            conn.close()
            return
        finally:
            # Before the connection is put to use: from here on nobody may drop it for a stranger.
            self.strangers.pop(asyncio.current_task(), None)
        try:
            await self._use(conn, said)
        except (OSError, ValueError):
            conn.close()

    async def _use(self, conn: socket.socket, said: Dict[str, Any]) -> None:
        """Use a connection of the front in its role. Raises OSError, or ValueError for an unknown role."""
        role = said.get("role")
        if role == "control":
            await self._obey(conn)
        elif role == "files":
            await asyncio.get_running_loop().run_in_executor(None, self._receive, conn)
        elif role == "output":
            # A task: its handshake may take a while, and `_start` waits for it.
            self.outputs[number(said, "generation")] = asyncio.ensure_future(self._prepare_output(conn))
        elif role == "data":
            await self._start(conn, number(said, "generation"))
        else:
            raise ValueError("a connection for %r" % (role,))

    async def _introduced(self, conn: socket.socket) -> Dict[str, Any]:
        key = await as_agent(conn, self.secret)
        return await receive(conn, key)

    async def _answer(self, conn: socket.socket, value: Dict[str, Any]) -> None:
        await asyncio.get_running_loop().sock_sendall(conn, message(value))

    def _encrypted(self, conn: socket.socket, silence: Optional[float]) -> socket.socket:
        """The connection for a thread that may block, encrypted where there is a certificate. Raises OSError."""
        # The handshake of TLS always has a time limit. After it only files have one: output may be silent for ever.
        conn.settimeout(silence or SILENCE)
        secured = self.tls.wrap_socket(conn, server_side=True) if self.tls is not None else conn
        secured.settimeout(silence)
        return secured

    def _receive(self, conn: socket.socket) -> None:
        assert self.shelf is not None
        conn = self._encrypted(conn, SILENCE)
        try:
            answer = {"path": self.shelf.receive(conn)}
        except (OSError, ValueError, TypeError) as error:
            answer = {"problem": "the package could not be stored on this node: %s" % error}
        with contextlib.suppress(OSError):
            conn.sendall(message(answer))
        conn.close()

    # Workers

    async def _prepare_output(self, conn: socket.socket) -> socket.socket:
        await self._answer(conn, {})
        return await asyncio.get_running_loop().run_in_executor(None, self._encrypted, conn, None)

    def _launch(self, generation: int) -> Any:
        if generation not in self.launches:
            self.launches[generation] = asyncio.get_running_loop().create_future()
        return self.launches[generation]

    async def _start(self, conn: socket.socket, generation: int) -> None:
        """Start a worker. This connection becomes its socket; the front sends nothing on it before the answer."""
        assert self.shelf is not None
        # The order to launch comes by the control connection, earlier or later than this one.
        launch = await self._launch(generation)
        del self.launches[generation]
        output = await self.outputs.pop(generation)
        # The worker inherits this description of the socket, with its flags, and reads it blocking.
        os.set_blocking(conn.fileno(), True)
        folders: List[str] = []
        try:
            folders = self.shelf.make_run(str(launch["run"]), launch["links"], bool(launch["stores_inputs"]))
            launch["retained_file"] = self._retained_file(*launch["retained"])
            # From here on the process owns both connections: it inherits one, and its relay closes the other.
            worker = WorkerProcess(launch, conn, output, self._keys(), self._on_end)
        except OSError as error:
            output.close()
            self.shelf.remove_run(folders)
            conn.setblocking(False)
            await self._answer(conn, {"problem": "%s cannot be started there: %s" % (launch["python"], error)})
            conn.close()
            return
        worker.folders = folders
        self.workers[worker.generation] = worker
        conn.sendall(message({}))
        conn.close()

    def _retained_file(self, worker: int, size: int) -> int:
        """The memory for the workers with a number; -1 where their package wants none."""
        if size and worker not in self.retained:
            self.retained[worker] = os.memfd_create("panglot-retained", os.MFD_CLOEXEC)
            os.ftruncate(self.retained[worker], size)
        return self.retained.get(worker, -1)

    def _keys(self) -> bytes:
        return proof(self.secret, b"pipeline") + self.certificate.encode()

    def _on_end(self, worker: WorkerProcess, code: int) -> None:
        self.workers.pop(worker.generation, None)
        self.tell({"is": "exit", "generation": worker.generation, "code": code})
        if self.shelf is not None:
            self.shelf.remove_run(worker.folders)

    async def _look_after(self) -> None:
        """Tell the front how much memory each worker uses."""
        while True:
            await asyncio.sleep(LOOK)
            for worker in list(self.workers.values()):
                self.tell({"is": "memory", "generation": worker.generation, "bytes": worker.memory()})

    # Control

    def tell(self, value: Dict[str, Any]) -> None:
        if self.control is not None:
            self.control.write(json.dumps(value).encode() + b"\n")

    async def _obey(self, conn: socket.socket) -> None:
        """Do what the front says until it goes. Then end all workers and this process: nobody else can use them."""
        await self._answer(conn, {})
        reader, self.control = await self._streams(conn)
        try:
            while True:
                line = await reader.readline()
                if not line:
                    break
                said = heard(line)
                self._do(said, number(said, "generation"))
        except (OSError, ValueError):
            # The front has gone, or sends nonsense: either way nobody is left to work for.
            pass
        finally:
            for worker in list(self.workers.values()):
                worker.end()
                if self.shelf is not None:
                    self.shelf.remove_run(worker.folders)
            # Ray would keep the actor's process.
            os._exit(0)

    async def _streams(self, conn: socket.socket) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Both directions of a connection, encrypted where there is a certificate. Raises OSError."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(LONGEST)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, conn, ssl=self.tls)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    def _do(self, said: Dict[str, Any], generation: int) -> None:
        """Carry out an order about a worker. Raises ValueError for one that is not understood."""
        do = said.get("do")
        if do == "launch" and isinstance(said.get("launch"), dict) and not self._launch(generation).done():
            self._launch(generation).set_result(said["launch"])
        elif do == "ask":
            self.tell({"is": "here", "generation": generation})
        elif do == "signal":
            number_of_signal = number(said, "number")
            if generation in self.workers:
                self.workers[generation].signal(number_of_signal)
        else:
            raise ValueError("the front says what makes no sense: %r" % (do,))


def close_if_cancelled(conn: socket.socket, task: "asyncio.Task[None]") -> None:
    if task.cancelled():
        conn.close()


def listen(address: str, ports: Tuple[int, int]) -> socket.socket:
    """A listener on the node's address, at the first port of the range that is free. Raises OSError."""
    first, last = ports
    for port in range(first, last + 1):
        with contextlib.suppress(OSError):
            listener = socket.create_server((address, port), family=family_of(address))
            listener.setblocking(False)
            return listener
    if not last:
        raise OSError("nobody can listen at %s" % address)
    raise OSError("no port of %d-%d is free at %s: each worker there needs one of --agent-ports" % (*ports, address))


def family_of(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
