"""What the nodes of a graph send about a request, recorded for its client: see `panglot_worker.items.recording`."""

from __future__ import annotations

import re
from typing import Any, List, Optional

from panglot_worker.dialects.megflow.graph.channels import Target
from panglot_worker.dialects.megflow.graph.envelope import EMPTY, Contents
from panglot_worker.dialects.megflow.graph.node_rates import INSTANCE
from panglot_worker.items import recording

CLONE = re.compile(r"#\d+$")


class RecordedTarget(Target):
    """Stands before the target of one output, and records the contents that pass. Only servers with `--dev` use it."""

    def __init__(self, target: Target, node: str, port: str) -> None:
        self.target = target
        self.stage = "%s.%s" % (CLONE.sub("", INSTANCE.sub("", node)), port)

    def put(self, contents: Contents) -> None:
        record = _record_of(contents)
        if record is not None:
            record.add(self.stage, None if contents.msg is EMPTY else contents.msg)
        self.target.put(contents)

    def add_sender(self, sender: Any) -> None:
        self.target.add_sender(sender)

    def drop_sender(self, sender: Any) -> None:
        self.target.drop_sender(sender)

    def end(self, user: int, sender: Any) -> None:
        self.target.end(user, sender)

    def final_targets(self) -> List[Target]:
        return self.target.final_targets()


def _record_of(contents: Contents) -> Optional[recording.Record]:
    """The record of the request that an envelope is about. Frames of videos have none."""
    request = getattr(contents.token.subject, "request", None) if contents.token is not None else None
    return recording.record_of(request) if request is not None else None
