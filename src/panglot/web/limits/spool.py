"""Bodies too large for memory: a thread writes them to files as they arrive; answering a request removes its file."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import mmap
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

from panglot.machine.temporary import Temporary
from panglot.web.limits.quota import Quota

log = logging.getLogger("panglot.web")
PIECE = 1 << 20
"""Bytes that are written at once."""
MOST_WAITING = 8 << 20
"""Bytes that may wait to be written; a sender of more has to wait."""


class Spool:
    """The files of one front, in a folder that only its user can read. The folder is made when first needed.

    `most` is the limit of the server: the quota counts the bytes, over all ports and fronts.
    """

    def __init__(self, most: int, quota: Quota) -> None:
        self.most = most
        self.quota = quota
        self.folder = Temporary("panglot-spool-")
        self.threads: ThreadPoolExecutor | None = None
        self._count = 0
        self._trouble = 0
        """The number of the error that was logged last; 0 once a body has been saved since."""

    def begin(self) -> SpooledBody:
        if self.threads is None:
            self.threads = ThreadPoolExecutor(2, "spool")
        self._count += 1
        return SpooledBody(self, str(self._count))

    def saved(self, error: OSError | None) -> None:
        """Log an error of saving a body, once and not for every body."""
        number = (error.errno or -1) if error is not None else 0
        if error is not None and number != self._trouble:
            log.error("uploads cannot be saved below %s: %s", tempfile.gettempdir(), error.strerror or error)
        self._trouble = number

    def close(self) -> None:
        if self.threads is not None:
            self.threads.shutdown()
            self.folder.close()


class SpooledBody:
    """One body on its way to a file. Everything but `_save`, and the `_remove` it calls, runs on the event loop."""

    def __init__(self, spool: Spool, name: str) -> None:
        self.name = name
        self.path = Path()
        """The file, once something has been written to it."""
        self.size = 0
        self.error: OSError | None = None
        self.on_space: Callable[[], None] = lambda: None
        self._spool = spool
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._busy = False
        self._closed = False
        self._then: Callable[[], None] | None = None
        self._file: FileIO | None = None

    def write(self, data: bytes) -> bool:
        """Add bytes; False when the sender has to wait until `on_space` is called."""
        self._pieces.append(data)
        self._waiting += len(data)
        self.size += len(data)
        self._spool.quota.spooled += len(data)
        if self._waiting >= PIECE:
            self._flush()
        return self._waiting < MOST_WAITING

    @property
    def fits(self) -> bool:
        return self._spool.quota.spooled_by_all() <= self._spool.most

    def finish(self, then: Callable[[], None]) -> None:
        """Call `then` once all is written, or cannot be; `error` tells which."""
        self._then = then
        self._flush()

    def content(self) -> memoryview:
        """All that was written, as memory that maps the file."""
        if self._file is None or not self.size:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._file.fileno(), self.size, prot=mmap.PROT_READ))

    def close(self) -> None:
        """Remove the file: its request is answered."""
        if not self._closed:
            self._closed = True
            self._spool.quota.spooled -= self.size
            # A thread may be writing to the file: then `_saved` removes it.
            if not self._busy:
                self._remove()

    def _flush(self) -> None:
        if self._busy or self._closed or self._spool.threads is None:
            return
        self._busy = True
        # The thread gets a list of its own. The loop adds to the new one meanwhile, so no lock is needed.
        pieces, self._pieces = self._pieces, []
        saving = asyncio.get_running_loop().run_in_executor(self._spool.threads, self._save, pieces)
        saving.add_done_callback(lambda _: self._saved(sum(map(len, pieces))))

    def _save(self, pieces: list[bytes]) -> None:
        if self.error is not None:
            return
        try:
            if self._file is None:
                self.path = self._spool.folder.path() / self.name
                self._file = self.path.open("x+b", 0)
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[self._file.write(rest) :]
            # Writing to a removed file succeeds, but the worker would not find it by its path.
            if not os.fstat(self._file.fileno()).st_nlink:
                raise OSError(errno.ENOENT, "a file was removed while it was written")
        except OSError as error:
            # The space is free again before anybody is told that there was none: the next request may need it at once.
            self._remove()
            self.error = error

    def _saved(self, count: int) -> None:
        self._busy = False
        self._spool.saved(self.error)
        # Before the subtraction: only a sender that was told to wait is told to go on.
        had_to_wait = self._waiting >= MOST_WAITING
        self._waiting -= count
        if self._closed:
            self._remove()
            return
        if had_to_wait and self._waiting < MOST_WAITING:
            self.on_space()
        if self._pieces and (self._then is not None or self._waiting >= PIECE):
            self._flush()
        elif self._then is not None and not self._pieces:
            # All is on disk, and nothing came while the thread wrote.
            then, self._then = self._then, None
            then()

    def _remove(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with contextlib.suppress(OSError):
                self.path.unlink()
