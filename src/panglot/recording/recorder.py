"""Writing a recording: a thread of its own, bounded memory, rotation. Traffic never waits for it.

The loop that carries the traffic calls `take`, `release` and `offer`, which never wait. The thread redacts,
compresses and writes. Any trouble with the disk ends the recording, and nothing else.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from panglot.errors import StartError
from panglot.recording import recording
from panglot.recording.recording import Pair
from panglot.recording.redaction import Redaction
from panglot.recording.sink import PairSink, RecorderOptions
from panglot.terminal.text import counted

log = logging.getLogger("panglot.record")
MEMBER = 1 << 20
"""Bytes of pairs that are compressed together."""
FLUSH_AFTER = 1.0
"""Seconds after which pairs are written, even if they are few."""
NOTHING = object()
"""Stands for an entry of the queue when pairs have waited long enough."""
GZIP = b"\x1f\x8b"


class Recorder(PairSink):
    """One recording, from the creation of its file to `close`."""

    def __init__(self, options: RecorderOptions, on_end: Callable[[str], None] = log.warning) -> None:
        """Raises StartError when the file cannot be created, or a rule of redaction cannot be read."""
        super().__init__(options)
        try:
            self._redaction = Redaction(options.redact, options.secrets)
        except ValueError as error:
            raise StartError(str(error)) from None
        self._on_end = on_end
        self.pairs = 0
        """Pairs written."""
        self.why_dropped = "the disk was too slow"
        self.files: list[Path] = []
        """Files that rotation has put aside, the oldest first."""
        self._at_end = False
        self._queue: queue.SimpleQueue[tuple[Pair, int] | None] = queue.SimpleQueue()
        self.began = time.monotonic()
        self._put_aside_existing()
        self._file = _File(options.path, self._head())
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    # For the loop

    def offer(self, pair: Pair, size: int) -> None:
        """Write a pair. `take` has counted `size` bytes for it, which the recorder gives back."""
        self._queue.put((pair, size))

    def close(self, patience: float = 30.0) -> None:
        """Write the pairs that were offered, and close the file."""
        self._queue.put(None)
        self._thread.join(patience)

    def summary(self) -> str:
        """The outcome of the recording, in a sentence."""
        text = f"{self.pairs} {'pair' if self.pairs == 1 else 'pairs'} in {self.options.path}"
        text += f" and {len(self.files)} older files" if self.files else ""
        return text + (f"; {self.dropped} were dropped, since {self.why_dropped}" if self.dropped else "")

    # In the thread

    def _run(self) -> None:
        try:
            self._write_all()
            self._file.close(self._counts())
        except StartError as error:
            self._stop(error.problem)
        except OSError as error:
            self._stop(error.strerror or str(error))
        except Exception as error:
            log.exception("the recorder failed")
            self._stop(str(error))

    def _stop(self, why: str) -> None:
        """End the recording, cut the file to whole members, and go on giving memory back."""
        self.recording = False
        self._file.abandon()
        written = f"it holds {counted(self.pairs, 'pair')}, and the service goes on"
        self._on_end(f"the recording has ended: {self.options.path}: {why}; {written}")
        # Nothing comes after the end of the queue, and waiting for more would hold up `close`.
        while not self._at_end and (entry := self._queue.get()) is not None:
            self.release(entry[1])

    def _write_all(self) -> None:
        waiting: list[bytes] = []
        sizes = count = 0
        due = 0.0
        while True:
            try:
                timeout = max(0.0, due - time.monotonic()) if waiting else None
                entry: tuple[Pair, int] | object | None = self._queue.get(timeout=timeout)
            except queue.Empty:
                entry = NOTHING
            self._at_end = entry is None
            if isinstance(entry, tuple):
                if not waiting:
                    due = time.monotonic() + FLUSH_AFTER
                waiting.append(self._encoded(*entry))
                sizes += len(waiting[-1])
                count += 1
            if waiting and (entry is None or sizes >= MEMBER or time.monotonic() >= due):
                self._file.write(b"".join(waiting))
                self.pairs += count
                waiting, sizes, count = [], 0, 0
                self._rotate_if_due()
            if entry is None:
                return

    def _encoded(self, pair: Pair, size: int) -> bytes:
        try:
            pair.number = self._file.pairs = self._file.pairs + 1
            self._redaction.apply(pair)
            return recording.encoded(pair)
        finally:
            self.release(size)

    def _head(self) -> dict[str, object]:
        return {recording.MARK: recording.VERSION, "began": round(time.time(), 3), "service": self.options.service}

    def _counts(self) -> dict[str, object]:
        return {"end": {"pairs": self._file.pairs, "dropped": self.dropped, "skipped": self.skipped}}

    # Rotation

    def _put_aside_existing(self) -> None:
        """Rename a recording that has the name already. Raises StartError when the file is something else."""
        path = self.options.path
        try:
            if not path.exists():
                return
            with path.open("rb") as file:
                is_recording = path.is_file() and file.read(2) == GZIP
        except OSError as error:
            raise StartError(f"{path} cannot be read: {error.strerror or error}", fix="name another file") from None
        if not is_recording:
            raise StartError(f"{path} exists and is no recording", fix="name another file")
        try:
            path.rename(_aside(path))
        except OSError as error:
            raise StartError(f"{path} cannot be renamed: {error.strerror}", fix="name another file") from None

    def _rotate_if_due(self) -> None:
        options, file = self.options, self._file
        too_large = options.rotate_size and file.size >= options.rotate_size
        if not too_large and not (options.rotate_age and time.monotonic() - file.opened >= options.rotate_age):
            return
        file.close(self._counts())
        older = _aside(options.path)
        options.path.rename(older)
        self.files.append(older)
        while options.retain and len(self.files) > options.retain:
            self.files.pop(0).unlink(missing_ok=True)
        self._file = _File(options.path, self._head())


def _aside(path: Path) -> Path:
    """A free name for a file that was written until now: old.rec becomes old-20261116T184751.rec."""
    stem = f"{path.stem}-{time.strftime('%Y%m%dT%H%M%S')}"
    name, number = path.with_name(f"{stem}{path.suffix}"), 1
    while name.exists():
        number += 1
        name = path.with_name(f"{stem}-{number}{path.suffix}")
    return name


class _File:
    """A file of whole gzip members, which its owner alone may read."""

    def __init__(self, path: Path, head: dict[str, object]) -> None:
        """Raises StartError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self.opened = time.monotonic()
        self.size = self.pairs = 0
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise StartError(f"{path} cannot be created: {error.strerror}", fix="name another file") from None
        try:
            self.write(recording.line(head))
        except OSError as error:
            os.close(self._descriptor)
            raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None

    def write(self, content: bytes) -> None:
        """Append a member. Raises OSError; then `abandon` cuts off the part of the member that was written."""
        left = memoryview(recording.member(content))
        size = len(left)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += size

    def close(self, end: dict[str, object]) -> None:
        """Write the last line, and close the file. Raises OSError; then `abandon` has to close it."""
        self.write(recording.line(end))
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def abandon(self) -> None:
        """Close the file after its last whole member, unless it is closed."""
        if self._descriptor < 0:
            # It is closed, and its number may belong to another file by now.
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.ftruncate(descriptor, self.size)
            os.close(descriptor)
        except OSError:
            pass
