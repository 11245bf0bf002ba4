"""Which jobs of a damaged database can be stored anew, and in which state.

A stored answer is never computed again, also where the rest of its job is lost. A job that may not run twice runs only
if it is known that it has not run.
"""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

from panglot.jobs.job import DAMAGED, DONE, ENDED, FAILED, ID, INTERRUPTED, QUEUED, NewJob, Webhook, fault_text
from panglot.jobs.storage.folder import ANSWERS, JobFolder
from panglot.jobs.storage.salvage import Salvaged

COLUMNS = (
    "seq", "id", "model", "route", "owner", "key", "digest", "state", "attempts", "crashes", "accepted", "started",
    "ended", "due", "expires", "retain", "webhook", "own", "head", "lane", "rerun", "run_timeout", "size", "crc",
    "filed", "status", "answer_head", "answer_size", "answer_crc", "answer_filed", "parts", "fault",
)  # fmt: skip
ABOUT = ("id", "model", "route", "owner", "accepted", "expires", "retain", "webhook", "own", "lane", "rerun",
         "run_timeout", "size", "crc")  # fmt: skip
"""The fields of the job in the line before its body, besides the head."""
NO_ANSWER = {
    "answer_size": 0,
    "answer_filed": 0,
    "answer_head": None,
    "answer_crc": None,
    "status": None,
    "parts": None,
}


def about(job: NewJob, now: float, crc: int) -> bytes:
    """The line before a stored body: enough to make the job again if its row is lost."""
    content = {
        "id": job.id, "model": job.model, "route": job.route, "owner": job.owner, "accepted": now,
        "expires": now + job.lifetime, "retain": job.retain, "webhook": job.webhook and job.webhook.to_text(),
        "own": job.own, "lane": job.lane, "rerun": int(job.rerun), "run_timeout": job.run_timeout,
        "size": len(job.body), "crc": crc, "head": job.head.decode("latin-1"),
    }  # fmt: skip
    return json.dumps(content).encode() + b"\n"


def is_whole(data: bytes | None, size: int, crc: int | None) -> bool:
    return data is not None and len(data) == size and zlib.crc32(data) == crc


class Rescue:
    """The jobs that the rows and files of a damaged database still give."""

    def __init__(self, folder: JobFolder, rows: Salvaged) -> None:
        self.report: list[str] = []
        """The losses, in sentences for the log."""
        self.events: list[tuple[Any, ...]] = []
        """Id, number of the job, name, address and time of events about jobs that the damage has ended."""
        self._rows = rows
        self._now = time.time()
        self._answers = {path.name.partition(".")[0] for path in (folder.path / ANSWERS).iterdir()}
        """The ids of the jobs that have an answer in a file."""

    def jobs(self) -> Iterator[dict[str, Any]]:
        """The jobs to store, with all columns. Answers that belong to none of them are taken out of the rows."""
        payloads, stored = self._rows.payloads, set()
        for row in self._rows.jobs.values():
            job = dict(zip(COLUMNS, row, strict=True))
            self._save(job)
            stored.add(job["seq"])
            yield job
        # Jobs with a damaged row too: the line before a whole body has all that is needed.
        for position in [position for position in payloads if not position % 2 and position // 2 not in stored]:
            rebuilt = self._rebuilt(position)
            if rebuilt is not None:
                yield rebuilt

    def _save(self, job: dict[str, Any]) -> None:
        """Change a job with a whole row into what can be stored: one that has not ended needs its body."""
        seq, name, payloads = job["seq"], job["id"], self._rows.payloads
        stored = payloads.get(seq * 2)
        body = stored.partition(b"\n")[2] if stored is not None else None
        has_body = bool(job["filed"]) or is_whole(body, job["size"], job["crc"])
        if job["state"] not in ENDED and self._is_answered(seq, name):
            # The row is of a time before the end.
            self._end_answered(job)
            self.report.append(f"job {name}: its end is lost; it is failed, and does not run again")
            return
        answered = job["state"] in (DONE, FAILED)
        if not answered:
            if not has_body and job["state"] not in ENDED:
                self._end(job, FAILED, fault_text("body_damaged", "a damaged database lost the body of the job"))
                self.report.append(f"job {name}: its body is lost; it is failed")
            return
        if not job["answer_size"] or job["answer_filed"]:
            return
        if is_whole(payloads.get(seq * 2 + 1), job["answer_size"], job["answer_crc"]):
            return
        payloads.pop(seq * 2 + 1, None)
        job |= NO_ANSWER
        if not has_body:
            self._end(job, FAILED, fault_text(DAMAGED, "a damaged database lost the answer and the body of the job"))
            self.report.append(f"job {name}: its body and its answer are lost; it is failed")
        elif job["rerun"]:
            job |= {"state": QUEUED, "due": job["expires"], "ended": None, "fault": None}
            self.report.append(f"job {name}: its answer is lost; it runs again")
        else:
            message = "the job was done, and a damaged database lost its answer; the model's jobs may not run twice"
            self._end(job, INTERRUPTED, fault_text("interrupted", message))
            self.report.append(f"job {name}: its answer is lost, and it may not run twice")

    def _rebuilt(self, position: int) -> dict[str, Any] | None:
        """A job whose row is lost and whose body is whole, by the line that stands before the body."""
        first, _, body = self._rows.payloads[position].partition(b"\n")
        try:
            saved = json.loads(first)
            job: dict[str, Any] = dict.fromkeys(COLUMNS) | {name: saved[name] for name in ABOUT}
            job["head"] = saved["head"].encode("latin-1")
            whole = is_whole(body, saved["size"], saved["crc"])
            if not ID.fullmatch(job["id"]):
                return None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        name = job["id"]
        if not whole:
            self.report.append(f"job {name}: its row and a part of its body are lost")
            return None
        job |= {"seq": position // 2, "state": QUEUED, "attempts": 0, "crashes": 0, "due": job["expires"], "filed": 0}
        job |= NO_ANSWER
        if self._is_answered(job["seq"], name):
            self._end_answered(job)
            self.report.append(f"job {name}: its row is lost; it is failed, and does not run again")
        elif not job["rerun"]:
            message = "a damaged database lost whether the job has run; the model's jobs may not run twice"
            self._end(job, INTERRUPTED, fault_text("interrupted", message))
            self.report.append(f"job {name}: its row is lost, and it may not run twice")
        else:
            self.report.append(f"job {name}: its row is lost, and made again from its body")
        return job

    def _is_answered(self, seq: int, name: str) -> bool:
        return seq * 2 + 1 in self._rows.payloads or name in self._answers

    def _end_answered(self, job: dict[str, Any]) -> None:
        """Fail a job whose answer is stored, and whose row does not tell how the answer is to be read."""
        self._rows.payloads.pop(job["seq"] * 2 + 1, None)
        job |= NO_ANSWER
        message = "the job was done, and a damaged database lost how it ended"
        self._end(job, FAILED, fault_text("row_lost", message))

    def _end(self, job: dict[str, Any], state: int, fault: str) -> None:
        now = self._now
        job |= {"state": state, "ended": now, "due": now + job["retain"], "fault": fault}
        # The text may be damaged itself.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            webhook = Webhook.from_text(job["webhook"]) if job["webhook"] else None
            if webhook is not None and "failed" in webhook.events:
                self.events.append((f"evt_{job['id']}_failed", job["seq"], "failed", webhook.url, now))
