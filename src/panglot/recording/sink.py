"""The sink for the pairs of taps: the memory that taps may use, and the counters of a recording."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from panglot.recording.recording import Pair
from panglot.recording.sampling import Sampler, SamplingRules

log = logging.getLogger("panglot.record")
PAIR_COST = 2048
"""Bytes that count for each pair besides its bodies: for its heads and objects."""


@dataclass(frozen=True)
class RecorderOptions:
    """The options of a recording. Sizes are bytes, times seconds; 0 means without limit."""

    path: Path
    service: str = ""
    sampling: SamplingRules = field(default_factory=SamplingRules)
    redact: tuple[str, ...] = ()
    max_body: int = 16 << 20
    memory: int = 256 << 20
    rotate_size: int = 0
    rotate_age: float = 0.0
    retain: int = 0
    """Files before the current one that are not deleted; 0: all."""
    secrets: tuple[str, ...] = ()
    """Values that are never written, in any header or address."""


class PairSink(ABC):
    """Takes the pairs of one process. Nothing here waits."""

    began = 0.0
    """The time from which the times of pairs count."""

    def __init__(self, options: RecorderOptions, turn: int = 0) -> None:
        self.options = options
        self.sampler = Sampler(options.sampling, turn)
        self.recording = True
        """Whether pairs are still written. The loop reads it, the writer clears it."""
        self.dropped = self.skipped = 0
        """Pairs that were lost; exchanges that were not HTTP/1, or that sampling left out."""
        self._said_http2 = False
        self._used = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Count bytes that are held in memory for a pair; False, and nothing is counted, beyond the limit."""
        # A lock: the loop takes, and the thread of the recorder gives back.
        with self._lock:
            if self._used + size > self.options.memory:
                return False
            self._used += size
            return True

    def release(self, size: int) -> None:
        with self._lock:
            self._used -= size

    @abstractmethod
    def offer(self, pair: Pair, size: int) -> None:
        """Write a pair. `take` has counted `size` bytes for it, which the sink gives back."""

    def note_http2(self) -> None:
        """Log once that HTTP/2 passes and is not recorded."""
        if not self._said_http2:
            self._said_http2 = True
            log.warning("HTTP/2, such as gRPC, is passed on and not recorded")
