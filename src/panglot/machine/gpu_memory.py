"""How much memory of a GPU each process holds, as nvidia-smi tells; it runs only while somebody looks.

Inside of a container whose processes have numbers of their own, nvidia-smi tells those of the machine, or none: there
are no figures then.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil

QUERY = ("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
EVERY = 5.0
MIB = 1 << 20


class Gpus:
    """The last figures. `look` renews them in the background, at most every few seconds."""

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        """Bytes by process."""
        self._program = shutil.which("nvidia-smi")
        self.as_of = -math.inf
        """When the program was last run that told figures."""
        self._looked = -math.inf
        self._asking: asyncio.Task[None] | None = None

    def look(self, now: float, since: float = -math.inf) -> None:
        """Renew figures that are some seconds old, or older than a moment."""
        old = now - self._looked > EVERY or self._looked < since
        if self._program and old and (self._asking is None or self._asking.done()):
            self._looked = now
            self._asking = asyncio.get_running_loop().create_task(self._ask(self._program, now))

    async def renewed(self, now: float) -> None:
        """Wait for figures that are not old; for a program that does not answer, as long as it is given."""
        self.look(now)
        if self._asking is not None:
            await asyncio.shield(self._asking)

    async def _ask(self, program: str, now: float) -> None:
        """Run it once; a program that fails or hangs gives no figures."""
        used: dict[int, int] = {}
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            process = await asyncio.create_subprocess_exec(
                program, *QUERY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                async with asyncio.timeout(EVERY):
                    said, _ = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
            for line in said.decode().splitlines():
                pid, _, size = line.partition(",")
                if size.strip().isdigit():
                    used[int(pid)] = used.get(int(pid), 0) + int(size) * MIB
            if process.returncode == 0:
                self.as_of = now
        self.memory = used
