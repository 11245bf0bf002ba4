"""A job as a call of the engine. It collects the answer, and passes it to the board."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from panglot.engine.call import Call, CallProgress, Fault, MemoryQuota
from panglot.jobs.job import DONE, FAILED, Claimed, Job, JobOutcome, fault_text
from panglot_worker.line import wire

MOST_PRINTED = 65536
"""The last characters that a job's script has printed: so many are in memory while it runs."""
NOT_RUN = frozenset({"loading", "waking", "queue_full", "queue_timeout", "draining", "back_off", "no_place", "memory"})
"""Codes of faults that are no fault of the job: the engine could not take it."""
TRIED_AGAIN = frozenset({"worker_died", "timeout", "place_lost"})
"""Codes of faults after which a job gets another attempt."""

STREAM_TOO_LARGE = Fault(
    500, "stream_too_large", "the parts of the answer need more memory than there is for requests: request_memory"
)

METHOD, JOB = wire.Head._fields.index("method"), wire.Head._fields.index("job")
BEFORE_JOB = b"\0" + b"\0".join(wire.Head()[METHOD:JOB]) + b"\0"
"""The bytes between the last field that most heads have and the field of the job."""

Writer = Callable[[str, Fault, bytes], tuple[int, bytes, bytes]]
"""Makes status, head and body of the answer for a fault, given the route's path and the request's id."""


class JobCall(Call):
    """The run of one job. `ended` is called once: with the outcome, or with a fault that may lead to a further run."""

    __slots__ = (
        "answer_head", "cancel", "changed", "claimed", "ended", "is_over", "parts", "printed_text", "progress",
        "received", "run_limit", "write_fault",
    )  # fmt: skip

    background = True
    reserves = False

    def __init__(
        self,
        claimed: Claimed,
        quota: MemoryQuota,
        write_fault: Writer,
        ended: Callable[[JobCall, JobOutcome | Fault], None],
        changed: Callable[[str], None],
        cancel: Callable[[Call], None],
    ) -> None:
        super().__init__(quota)
        self.claimed = claimed
        # The stored head is the head of the request, which was made before the job had its id.
        self.head = _with_job(claimed.head, claimed.job.id.encode())
        self.lane = claimed.lane
        self.request_id = claimed.head.partition(b"\0")[0]
        self.write_fault = write_fault
        self.ended = ended
        self.changed = changed
        self.cancel = cancel
        """Ends the call in the engine."""
        self.is_over = False
        """Whether the board has its end, and stores it."""
        self.parts: list[bytes] = []
        """The parts of a streamed answer, as they come."""
        self.received = 0
        """Bytes of these parts, which the quota counts until the answer is stored."""
        self.answer_head = b""
        self.progress: CallProgress | None = None
        self.printed_text = ""
        self.arrived = time.monotonic()
        self.deadline = float("inf")
        self.run_limit = claimed.run_timeout
        # Never refused: the job was accepted with this body.
        quota.used += len(claimed.body)
        self.pieces, self.size = (claimed.body,), len(claimed.body)

    @property
    def job(self) -> Job:
        return self.claimed.job

    # Called by the engine

    def report(self, progress: CallProgress) -> None:
        self.progress = progress
        self.changed(self.job.id)

    def printed(self, source: str, text: str) -> None:
        self.printed_text = (self.printed_text + text)[-MOST_PRINTED:]
        self.changed(self.job.id)

    def reply(self, reply: wire.Reply) -> None:
        """Take the answer of the script, its failure, or a part of a stream."""
        if reply.flags & wire.ERROR:
            self._failed(reply)
            return
        if reply.flags & wire.MORE or self.parts:
            if not self._add_part(reply):
                # In this order: a job that has its end is not cancelled, so that the end is stored.
                self.ended(self, STREAM_TOO_LARGE)
                self.cancel(self)
                return
            if reply.flags & wire.MORE:
                self.changed(self.job.id)
                return
            self.ended(self, self._streamed(reply))
            return
        state = FAILED if reply.status >= 400 else DONE
        self.ended(self, JobOutcome(state, reply.status, bytes(reply.head), bytes(reply.body)))

    def fail(self, fault: Fault) -> None:
        """Take the engine's fault: the board decides whether the job is tried again."""
        self.ended(self, fault)

    def outcome(self, fault: Fault) -> JobOutcome:
        """The end of the job by a fault, in the form of its platform."""
        status, head, body = self.write_fault(self.job.route, fault, self.request_id)
        return JobOutcome(FAILED, status, head, body, fault=fault_text(fault.code, fault.message))

    def _failed(self, reply: wire.Reply) -> None:
        problem = json.loads(bytes(reply.body))
        fault = Fault(reply.status, problem["code"], problem["message"], details=problem.get("details"))
        self.ended(self, self.outcome(fault))

    def _add_part(self, reply: wire.Reply) -> bool:
        """Add a part of the answer; False when there is no memory for it."""
        size = len(reply.body)
        if not self.parts:
            self.answer_head = bytes(reply.head)
        if size:
            if not self.quota.take(size, self.received + size):
                return False
            self.parts.append(bytes(reply.body))
            self.received += size
        return True

    def release_parts(self) -> None:
        """Release the parts: the answer is stored, or nobody wants it. May be called again."""
        self.quota.used -= self.received
        self.received, self.parts = 0, []

    def _streamed(self, last: wire.Reply) -> JobOutcome:
        ends, at = [], 0
        for part in self.parts:
            at += len(part)
            ends.append(at.to_bytes(8, "big"))
        failed = last.status >= 400
        fault = fault_text("stream_failed", "the script failed in the middle of its stream") if failed else None
        state = FAILED if failed else DONE
        return JobOutcome(state, 200, self.answer_head, b"".join(self.parts), b"".join(ends), fault)


def _with_job(head: bytes, name: bytes) -> bytes:
    """The packed head of a request, for the worker that runs the request as this job."""
    missing = METHOD - 1 - head.count(b"\0")
    if missing < 0:
        return wire.Head.unpack(head)._replace(job=name).pack()
    # The same result without unpacking the head, for most heads: the missing fields get their defaults.
    return head + b"\0" * missing + BEFORE_JOB + name
