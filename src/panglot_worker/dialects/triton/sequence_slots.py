"""Which requests of which sequences run next. Does no I/O and reads no clock."""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, List, Optional, Union

from panglot_worker.errors import ClientError

SequenceId = Union[int, str]


class Sequence:
    """The requests of one correlation id that wait, and what the model remembers of the requests before them."""

    def __init__(self, name: SequenceId) -> None:
        self.name = name
        self.slot = -1
        """Its place among those that run; -1: it waits for one."""
        self.waiting: Deque["SequenceCall"] = deque()
        self.states: Dict[str, Any] = {}
        """The model's implicit state, by the name of the input it is given as."""
        self.touched = 0.0
        """When its last request came or ended, by the clock of the server."""
        self.last = 0
        """The item of its last request."""
        self.running = False
        self.closing = False
        """Whether no more requests can come: its slot is free once the waiting requests are done."""


class SequenceCall:
    """A request of a sequence."""

    def __init__(self, item: Any, made: Any, starts: bool, ends: bool) -> None:
        self.item = item
        self.made = made
        self.starts, self.ends = starts, ends
        self.sequence: Sequence


class Sequences:
    """All sequences of a worker. Sequences without a slot wait, in the order they began, until another ends."""

    def __init__(self, model: str, slots: int, rows: int, idle: float, direct: bool) -> None:
        self.model = model
        self.rows = rows
        self.idle = idle
        """Seconds after which a sequence without requests is given up."""
        self.direct = direct
        self.slots: List[Optional[Sequence]] = [None] * slots
        self.backlog: Deque[Sequence] = deque()
        self.by_name: Dict[SequenceId, Sequence] = {}
        """The sequences that may get further requests."""

    def add(self, call: SequenceCall, name: SequenceId, now: float) -> None:
        """Queue a request behind the others of its sequence. Raises ClientError where it belongs to none."""
        if not name:
            message = "inference request to model '%s' must specify a non-zero or non-empty correlation ID"
            raise ClientError(message % self.model)
        if call.starts:
            # Requests of an earlier sequence of this name that still wait are run, in a sequence of their own.
            self._close(self.by_name.pop(name, None))
            sequence = self.by_name[name] = Sequence(name)
            self.backlog.append(sequence)
        elif name in self.by_name:
            sequence = self.by_name[name]
        else:
            message = (
                "inference request for sequence %s to model '%s' must specify the START flag on the first request of "
                "the sequence; a sequence ends with END, when it is idle for too long, and with its worker"
            )
            raise ClientError(message % (name, self.model))
        call.sequence = sequence
        sequence.waiting.append(call)
        sequence.touched, sequence.last = now, call.item.id
        if call.ends:
            del self.by_name[name]
            sequence.closing = True
        self._fill()

    def _fill(self) -> None:
        """Give free slots to the sequences that wait for one."""
        for slot, sequence in enumerate(self.slots):
            if sequence is None and self.backlog:
                self.slots[slot] = first = self.backlog.popleft()
                first.slot = slot

    def _close(self, sequence: Optional[Sequence]) -> None:
        if sequence is not None:
            sequence.closing = True
            self._free(sequence)

    def _free(self, sequence: Sequence) -> None:
        """Give up the slot of a sequence that is done."""
        if sequence.closing and not sequence.waiting and not sequence.running:
            if sequence.slot >= 0:
                self.slots[sequence.slot] = None
                sequence.slot = -1
            elif sequence in self.backlog:
                self.backlog.remove(sequence)
            self._fill()

    def held(self) -> List[int]:
        """The items of requests that wait for a slot."""
        return [call.item.id for sequence in self.backlog for call in sequence.waiting]

    def oldest_last(self) -> int:
        """The oldest of the last items of all sequences with slots; 0 if there are none."""
        return min((sequence.last for sequence in self.slots if sequence is not None), default=0)

    @property
    def is_runnable(self) -> bool:
        return any(sequence is not None and sequence.waiting for sequence in self.slots)

    def next(self) -> List[Optional[SequenceCall]]:
        """The requests of the next call of the model, at most one of each sequence; none: nothing can run.

        With the direct strategy each sequence stands at its slot, and None stands at slots without a request.
        """
        heads = [sequence.waiting[0] if sequence and sequence.waiting else None for sequence in self.slots]
        chosen = [call for call in heads if call is not None]
        if not self.direct:
            # The oldest first: an item's number grows with its arrival.
            chosen = sorted(chosen, key=lambda call: int(call.item.id))[: self.rows]
        for call in chosen:
            call.sequence.waiting.popleft()
            call.sequence.running = True
        if not self.direct:
            return list(chosen)
        last = max((at for at, call in enumerate(heads) if call is not None), default=-1)
        return heads[: last + 1]

    def done(self, call: SequenceCall, now: float) -> None:
        """Note that a request has run."""
        call.sequence.running = False
        call.sequence.touched = now
        self._free(call.sequence)

    def remove(self, call: SequenceCall) -> List[SequenceCall]:
        """Take out a waiting request that is cancelled. Returns the requests that cannot run without it: the rest of
        its sequence, where it was the first."""
        sequence = call.sequence
        sequence.waiting.remove(call)
        lost: List[SequenceCall] = []
        if call.starts:
            lost = list(sequence.waiting)
            sequence.waiting.clear()
            if self.by_name.get(sequence.name) is sequence:
                del self.by_name[sequence.name]
            sequence.closing = True
        self._free(sequence)
        return lost

    def expire(self, now: float) -> None:
        """Give up the sequences that have been idle for too long."""
        for sequence in [sequence for sequence in self.by_name.values() if self._due(sequence) <= now]:
            self._close(self.by_name.pop(sequence.name))

    def close(self) -> None:
        """Give up all sequences: no more requests come for them."""
        for name in list(self.by_name):
            self._close(self.by_name.pop(name))

    def next_expiry(self) -> float:
        """When the first sequence is idle for too long; infinity where there is none."""
        return min(map(self._due, self.by_name.values()), default=float("inf"))

    def _due(self, sequence: Sequence) -> float:
        busy = sequence.waiting or sequence.running
        return float("inf") if busy else sequence.touched + self.idle
