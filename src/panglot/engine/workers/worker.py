"""One worker as the front knows it: its process, its link, and its calls."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panglot.engine.call import RUNNING, Call
from panglot.engine.memory.buffers import Arena, Leases
from panglot.engine.pools.ahead import BatchProgress, WorkerPace
from panglot.engine.pools.recalling import RECALL_AFTER
from panglot.engine.pools.slow_readers import StreamPause
from panglot.engine.processes import process
from panglot.engine.processes.family import MARK, Family
from panglot.engine.processes.output import ScriptOutput
from panglot.engine.workers.link import Link
from panglot.machine import cgroups
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool

STARTING, LOADING, READY, RETIRING, DEAD = "starting", "loading", "ready", "retiring", "dead"
DIED, HUNG, RETIRED, SICK, LOST, STOPPED = "died", "hung", "retired", "sick", "lost", "stopped"
"""Why a worker ends, in this order: by itself; killed because it took too long; replaced on purpose; because nothing
can succeed in it any more; with its machine; with a call that nobody waits for."""
KILLED = (HUNG, STOPPED)
KILL_AFTER = 2.0
"""Seconds that an aborted worker has to write its stacks."""
STUCK = 0.005
"""Seconds after which the call it runs is no longer taken for one of about a millisecond."""
LINGER = 0.5
"""Seconds in which the last replies and the last output of a process are read after its end."""
log = logging.getLogger("panglot.worker")
Lend = Callable[["Worker", Call], int]


class Worker:
    """The front's record of one worker process. It belongs to a pool and is never reused after the process's death."""

    gives: Arena | None = None
    takes: tuple[Arena, ...] = ()
    """The files for results to other models, and from them, as they were when it was started."""

    def __init__(self, pool: Pool, index: int, generation: int, clock: Callable[[], float]) -> None:
        self.pool = pool
        self.index = index
        self.generation = generation
        self.clock = clock
        self.state, self.step = STARTING, "starting"
        self.since = clock()
        self.info: dict[str, Any] = {}
        self.failure: dict[str, Any] | None = None
        self.report: dict[str, Any] = {}
        """What its dialect last reported about itself."""
        self.predecessor: Worker | None = None
        """The worker this one takes over from once it is ready."""
        self.owns_retained = False
        """Whether it owns the memory that outlives it, and no other worker does."""
        self.in_flight: dict[int, Call] = {}
        """Its calls, in the order in which they were sent."""
        self.batches = BatchProgress()
        self.recalled: set[int] = set()
        """Items that were recalled, and that the worker has not answered yet."""
        self.leases = Leases()
        self.results: Arena | None = None
        """The buffers it may be lent for its results."""
        self.busy_since = 0.0
        self.batched, self.interrupts, self.slots, self.open_slots = False, False, 1, 1
        """Whether the script takes batches, and a signal interrupts its call; how many run at once, and now."""
        self.max_batch = 1
        self.lanes: dict[str, int | None] = {}
        """By lane: the most calls in one batch, where the script has several lanes and limits them."""
        self.pace = WorkerPace()
        self.served = self.memory_needed = 0
        """How many answers it has given; bytes of memory it used when it was ready, where these are limited."""
        self.reason, self.why = DIED, ""
        self.paused = self.loaded = False
        """Whether it reads too slowly for more; whether it has been ready."""
        self.sick = self.accused = False
        """Whether it has said that nothing can succeed in it any more; whether it ends because of an unusable reply."""
        self.popen: subprocess.Popen[bytes] | None = None
        self.link = Link(self, generation)
        self.stream_pause = StreamPause(self.link, self.in_flight)
        self.output: ScriptOutput | None = None
        self._life_fd = self._pidfd = -1
        self._out_of_memory_before = cgroups.out_of_memory_kills()
        self._exited = self._link_lost = False
        self.family = Family()

    def __str__(self) -> str:
        return f"{self.pool.title} {self.index}"

    @property
    def pid(self) -> int:
        return self.popen.pid if self.popen else 0

    @property
    def child(self) -> int:
        """The process, where it is a child of this one; else 0."""
        return self.pid

    @property
    def node(self) -> str:
        """The machine of a cluster it is on; empty: this one."""
        return ""

    @property
    def returncode(self) -> int | None:
        return self.popen.returncode if self.popen else None

    def memory(self) -> int:
        """Bytes of memory that it alone uses."""
        return process.memory(self.pid)

    def lives(self) -> bool:
        """Whether the process lives, as the kernel knows. The news of its death may still be on its way here, and the
        last try of a call must not be spent on a dead worker."""
        # First, because `_on_exit` closes the pidfd. A script in this process has no `popen`: it counts as exited from
        # the start, and lives as long as its link.
        if self._exited or self._link_lost:
            return self.popen is None and not self._link_lost
        death = select.poll()
        death.register(self._pidfd, select.POLLIN)
        return not death.poll(0)

    # Starting

    async def start(
        self,
        python: str,
        folder: Path,
        environment: Mapping[str, str],
        hello: dict[str, Any],
        output: ScriptOutput,
        files: tuple[int, ...] = (),
    ) -> None:
        """Spawn the process and say hello. Raises OSError when it cannot be spawned."""
        loop = asyncio.get_running_loop()
        started = process.start(python, folder, {**environment, MARK: self.family.mark}, output.native, files)
        self.popen, self._life_fd, self.output = started.process, started.life_fd, output
        self._pidfd = started.pidfd
        loop.add_reader(self._pidfd, self._on_exit)
        await loop.connect_read_pipe(lambda: output, os.fdopen(started.output_fd, "rb", 0))
        await loop.create_unix_connection(lambda: self.link, sock=started.socket)
        # The worker enters the group when it reads this, before any code of the script runs.
        self._greet({"group": self.family.create_group(), **hello})

    async def adopt(self, sock: socket.socket, hello: dict[str, Any]) -> None:
        """Speak to a worker that runs in this process, on its main thread."""
        sock.setblocking(False)
        self._exited = True
        await asyncio.get_running_loop().create_unix_connection(lambda: self.link, sock=sock)
        self._greet(hello)

    def _greet(self, hello: dict[str, Any]) -> None:
        self.link.send([wire.json_frame(wire.HELLO, self.generation, {"generation": self.generation, **hello})])

    # Frames of the worker

    def longest(self, kind: int, count: int) -> int:
        """How long a frame may be: as long as the replies to all its calls, or as a control frame."""
        if kind != wire.REPLY:
            return {wire.EVENT: wire.MAX_EVENT, wire.CALL: self.pool.max_reply}.get(kind, wire.MAX_CONTROL)
        # `count` is the worker's word. It can owe no more replies than it has items.
        return min(count, len(self.in_flight) + len(self.recalled)) * self.pool.max_reply

    def on_frame(self, kind: int, count: int, payload: memoryview) -> None:
        """Act on a frame, or pass it on. Raises WireError for a frame that no worker may send."""
        if kind == wire.REPLY:
            replies = wire.replies(payload, count)
            if len(payload) > self.pool.large:
                self.pool.on_large(replies)
            self.pool.on_replies(self, replies)
            return
        if kind in (wire.FREE, wire.CALL):
            hear = self.pool.on_free if kind == wire.FREE else self.pool.on_call
            hear(self, payload)
            return
        value = wire.control(kind, payload)
        if kind == wire.HELLO:
            self.info = value
        elif kind == wire.LOADING:
            self.state, self.step = LOADING, str(value.get("step", ""))
        elif kind == wire.READY:
            self._ready(value)
        elif kind == wire.FAILED:
            self.failure = value
        elif kind == wire.EVENT:
            self._tell_event(value)
        elif kind == wire.METRIC:
            self.pool.on_metrics(value)
        else:
            raise wire.WireError(f"a worker sent {wire.NAMES.get(kind, kind)}")

    def _tell_event(self, value: dict[str, Any]) -> None:
        """Pass an event to the pool. A failure of the server itself is logged; the worker is not killed for it."""
        try:
            self.pool.on_event(self, value)
        except wire.WireError:
            raise
        except Exception:
            log.exception("an event of %s could not be noted", self)

    def _ready(self, value: dict[str, Any]) -> None:
        self.batched, self.slots = bool(value["batched"]), int(value["slots"])
        self.open_slots, self.interrupts = self.slots, bool(value.get("interrupts"))
        self.lanes, self.loaded = value.get("lanes") or {}, True
        self.state, self.step, self.since = READY, "", self.clock()
        self.pool.on_ready(self, value)

    def change_slots(self, slots: int) -> None:
        """Give it so many calls at once. It counts as a worker that runs several calls, even when it says one."""
        self.open_slots = max(1, slots)
        # Otherwise the calls it holds when the number falls would count as calls that it has not begun.
        self.slots = max(2, self.slots, slots)

    def on_paused(self, paused: bool) -> None:
        self.paused = paused
        if not paused:
            self.pool.on_writable()

    # Running

    def run(self, calls: Sequence[Call], now: float, singly: bool, lend: Lend | None = None) -> None:
        """Send calls to the worker; `lend` gives each a buffer for its result."""
        flags, ahead = wire.SINGLY if singly else 0, False
        # Only for an idle worker: behind a running call, the time of that call goes on.
        if not self.in_flight:
            self.busy_since = now
            self.batches.begin(len(calls), now)
        elif self.batched:
            flags, ahead = flags | wire.AHEAD, True
        items = []
        for call in calls:
            call.state, call.dispatched, call.worker, call.ahead = RUNNING, now, self.index, ahead
            call.queued_us = int((now - call.arrived) * 1e6)
            self.in_flight[call.id] = call
            lent = lend(self, call) if lend is not None else 0
            # The worker owns its own buffer of the body: it may read on after the call was cancelled and released.
            location = self.leases.look(call.id, call.buffer) if call.buffer is not None else 0
            items.append((call.id, call.deadline - now, call.head, call.pieces, call.size, location, lent))
        self.link.send(wire.run_frame(items, self.generation, flags))

    def take_over(self) -> None:
        """Tell the worker that it owns the memory which its predecessor wrote."""
        self.owns_retained = True
        self.link.send([wire.frame(wire.TAKE_OVER, self.generation)])

    def cancel(self, call: Call) -> None:
        self.link.send([wire.cancel_frame([call.id], self.generation)])

    def recall(self, begun: int) -> list[Call]:
        """Take back all calls but those it has begun. An answer the worker still gives to one of them is ignored."""
        behind = list(self.in_flight.values())[begun:]
        ids = [call.id for call in behind]
        for item_id in ids:
            del self.in_flight[item_id]
        # One reply is still due for each. The leases stay too: the worker may be reading these bodies already.
        self.recalled.update(ids)
        self.stream_pause.check()
        self.link.send([wire.cancel_frame(ids, self.generation)])
        # The others were cancelled, or are overdue, and must not run again.
        return [call for call in behind if call.state == RUNNING]

    def nudge(self) -> None:
        """Make an idle worker that still owns bodies look whether anything of its script refers to them."""
        if self.leases.looked_at and not self.in_flight:
            self.link.send([wire.cancel_frame([], self.generation)])

    @property
    def takes_calls(self) -> bool:
        """Whether it may be given calls, unless it has enough."""
        return self.state == READY and not self.paused and self.reason not in KILLED

    def free_slots(self, now: float, many_wait: bool = False) -> int:
        """How many more calls it may be given now; `many_wait`: there are enough for all workers to have a next one."""
        calls, window = len(self.in_flight), 0
        if self.slots == 1 and not self.batched:
            window = self.pace.most_if_many_wait if many_wait else self.pace.window
            # First: most workers of a busy pool end here. The next calls are sent together once half are answered.
            if calls > window // 2:
                return 0
        if self.state != READY or self.paused or self.reason in KILLED:
            return 0
        first = next(iter(self.in_flight.values())) if calls else None
        # This call is suspected of killing workers: calls behind it could be lost with it.
        if first is not None and first.alone:
            return 0
        if self.slots > 1:
            return self.open_slots - calls
        if self.batched:
            return 0 if calls else self.max_batch
        if first is not None and (first.chunks or now - self.busy_since > STUCK):
            # Nobody knows how long a stream takes, and each of its parts makes the worker look as if it had just begun.
            return 0
        return window - calls

    def most_of(self, lane: str) -> int:
        """The most calls of a lane in one batch."""
        return self.lanes.get(lane) or self.max_batch

    @property
    def at_once(self) -> int:
        """How many calls it takes together."""
        return self.open_slots if self.slots > 1 else self.max_batch if self.batched else 1

    @property
    def taken(self) -> float:
        """Which part of it is busy, from 0 to 1."""
        return min(1.0, len(self.in_flight) / self.open_slots)

    @property
    def runs_several(self) -> bool:
        """Whether it runs several calls at once: as many as it likes, or a batch."""
        return self.slots > 1 or (self.batched and self.batches.begun > 1)

    @property
    def begun(self) -> int:
        """How many of its calls it has begun, as far as is known: all, the batch that runs, or one."""
        calls = len(self.in_flight)
        return calls if self.slots > 1 else min(calls, self.batches.begun if self.batched else 1)

    @property
    def waiting_behind(self) -> int:
        """How many calls it was sent that wait for the one it runs, or for the batch."""
        return len(self.in_flight) - self.begun

    def is_held_up(self, now: float) -> bool:
        """Whether the call or batch that it runs takes longer than the calls behind it could expect."""
        # Every part of a stream makes its worker look as if it had just begun.
        return now - self.busy_since > (RECALL_AFTER if self.batched else STUCK) or self.streams

    @property
    def streams(self) -> bool:
        """Whether the call it runs, which runs alone, is being answered in parts."""
        first = next(iter(self.in_flight.values()), None)
        return first is not None and first.chunks > 0 and self.slots == 1

    @property
    def sent_ahead(self) -> int:
        """How many calls of a next batch it has."""
        return max(0, len(self.in_flight) - self.batches.begun) if self.batched else 0

    def may_have_more(self) -> bool:
        """Whether it runs a batch, has no next one, and may get one."""
        if not self.batched or not self.takes_calls or self.slots > 1:
            return False
        first = next(iter(self.in_flight.values()), None)
        return first is not None and not first.alone and not first.chunks and not self.sent_ahead

    # Ending

    def retire(self, why: str) -> None:
        """Have the worker end once it has answered its calls."""
        if self.state != DEAD:
            self.mark_retiring(why)
            self.link.send([wire.frame(wire.STOP, self.generation)])

    def mark_retiring(self, why: str) -> None:
        """Give the worker no more calls: it ends on purpose, or because it is sick."""
        self.state, self.why, self.since = RETIRING, why, self.clock()
        self.reason = SICK if self.sick else RETIRED

    def interrupt(self) -> None:
        """Have the call it runs end, if all items of it are cancelled: see `panglot_worker.items.interrupting`."""
        if self.popen is not None and not self._exited:
            os.kill(self.popen.pid, wire.INTERRUPT)

    def kill_hung(self, why: str, reason: str = HUNG) -> None:
        """End a worker that hangs: abort first, for the stack traces it writes, then for good."""
        if self.popen is None or self._exited or self.reason in KILLED:
            # A process that has ended has been waited for: by now its number may belong to another.
            return
        self.reason, self.why = reason, why
        with contextlib.suppress(ProcessLookupError):
            # In this order: a process that was stopped must not go on, and answer, before it is aborted.
            os.kill(self.popen.pid, signal.SIGABRT)
            os.kill(self.popen.pid, signal.SIGCONT)
        asyncio.get_running_loop().call_later(KILL_AFTER, self.kill)

    def kill(self) -> None:
        """Kill the process group; where the script runs in this process, close the socket."""
        if self.popen is None:
            self.link.close()
        elif not self._exited:
            process.kill_group(self.popen)

    def _on_exit(self) -> None:
        """Kill what the ended process started, then give its last replies a moment to be read."""
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        assert self.popen is not None
        # Before `wait`: until then the dead process keeps its number, so that no other group can have it.
        process.kill_group(self.popen)
        self.popen.wait()
        self.family.kill()
        self._exited = True
        # A paused link would read neither the last replies nor the end of the stream.
        self.stream_pause.close()
        if self._link_lost:
            self._dead()
        else:
            # The end of the stream may not come by itself: a process that the script forked can have the socket too.
            asyncio.get_running_loop().call_later(LINGER, self.link.close)

    def on_lost(self) -> None:
        """The link has ended."""
        # Exit and end of link come in either order, and a worker is dead after both: its replies have been read then,
        # and it writes to no shared memory any more.
        self._link_lost = self.paused = True
        if self._exited:
            self._dead()
        else:
            self.kill()

    def _dead(self) -> None:
        if self.state != DEAD:
            self.state = DEAD
            if self._life_fd >= 0:
                # Not earlier: the kernel kills the worker's process group when this end is closed.
                os.close(self._life_fd)
            self.pool.on_death(self)

    @property
    def ended_itself(self) -> bool:
        """Whether the call it ran may be why the worker died."""
        return self.reason == DIED and not self.link.doubt and process.ended_itself(self.returncode)

    def cause(self) -> str:
        """Why the worker died, in words."""
        if self.why and self.reason != DIED:
            return f"is replaced: {self.why}" if self.sick else self.why
        if self.link.doubt:
            return f"broke the protocol: {self.link.doubt}"
        # Anybody can send SIGKILL. Only the kernel's counter tells that memory ran out.
        killed = self.popen is not None and self.returncode == -signal.SIGKILL
        if killed and cgroups.out_of_memory_kills() > self._out_of_memory_before:
            return "was killed by the kernel: out of memory"
        return process.cause(self.returncode)
