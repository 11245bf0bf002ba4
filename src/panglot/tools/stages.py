"""The values between the stages, as a worker sends them: see `panglot_worker/items/recording.py`."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STAGES = "application/x-panglot-stages"
MAGIC = b"PANGLOT-STAGES 1\n"
ORDER = ("decode", "preprocess", "inference", "final")


def ordered(*recorded: Mapping[str, Any]) -> tuple[str, ...]:
    """The stages of several records, in the order in which a request takes them.

    The stages of a script are always the same. Pools of a pipeline and nodes of a graph have their own names. They come
    in the order of the first record.
    """
    own = dict.fromkeys(name for stages in recorded for name in stages if name not in ORDER)
    if not own:
        return ORDER
    seen = [name for name in ORDER if any(name in stages for stages in recorded)]
    return (*(name for name in seen if name != ORDER[-1]), *own, ORDER[-1])


@dataclass(frozen=True)
class Opaque:
    """A value of which only the type is known."""

    note: str

    def __str__(self) -> str:
        return f"a {self.note}"


Leaves = dict[str, Any]
"""Arrays, JSON scalars and Opaque by their path in a value; the path of a single leaf is empty."""


@dataclass(frozen=True)
class Recorded:
    """An answer and what came before it, by stage."""

    status: int
    content_type: str
    body: bytes
    stages: dict[str, Leaves]


def parse(body: bytes) -> Recorded:
    """The record in a reply. Raises ValueError for a body that is no record, StartError where numpy is missing."""
    if not body.startswith(MAGIC):
        raise ValueError("this is no record of stages")
    try:
        at = len(MAGIC) + 4
        length = struct.unpack_from("<I", body, len(MAGIC))[0]
        about = json.loads(body[at : at + length])
        at += length + about["size"]
        answer = body[at - about["size"] : at]
        stages: dict[str, Leaves] = {}
        for name, rows in about["stages"].items():
            leaves: Leaves = {}
            for row in rows:
                size = row.get("size", 0)
                leaves[row["path"]] = _leaf(row, body[at : at + size])
                at += size
            stages[name] = leaves
        return Recorded(about["answer"]["status"], about["answer"]["content_type"], answer, stages)
    except (KeyError, TypeError, struct.error) as error:
        raise ValueError(f"this record of stages is damaged: {error}") from None


def _leaf(row: dict[str, Any], data: bytes) -> Any:
    if "dtype" in row:
        from panglot.tools import arrays

        return arrays.of_bytes(row["dtype"], row["shape"], data)
    return Opaque(row["note"]) if row["note"] else row["value"]
