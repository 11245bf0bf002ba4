"""The promise: a script that takes all the memory there is costs the request that made it do so, and nothing else."""

from __future__ import annotations

from support.cgroups import inside, memory_groups
from support.server import serving, wait_until

MIB = 1 << 20


def test_a_worker_without_memory_dies_alone() -> None:
    """The kernel takes the worker, not the front; its request gets 500, the log says why, the others go on."""
    with memory_groups(400 * MIB) as [group], serving("greedy", before=inside(group)) as server:
        assert server.predict({"bytes": MIB}).json() == {"got": MIB}
        for deaths in (1, 2):
            line = len(server.lines)
            assert server.predict({"bytes": 2000 * MIB}).status_code == 500
            server.wait_log("was killed by the kernel: out of memory", 20, after=line)
            wait_until(lambda: server.predict({"bytes": MIB}).status_code == 200, 20)
            assert server.metric("panglot_worker_restarts_total") >= deaths
        assert server.process.poll() is None


def test_a_script_that_is_told_there_is_none_lives_on() -> None:
    """A MemoryError fails that item alone; the others of its batch, and the next ones, are answered."""
    with serving("greedy") as server:
        assert server.predict({"bytes": 1 << 60}).status_code == 500
        server.wait_log("MemoryError")
        assert server.predict({"bytes": MIB}).json() == {"got": MIB}
