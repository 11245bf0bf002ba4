"""A worker of one pool of a pipeline: it runs some of the stages, and other processes run the rest."""

from __future__ import annotations

import inspect
from typing import Any, Dict, FrozenSet

from panglot_worker.dialects.base import Answer, Dialect, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.items.pipelines.handoff import SHARE_ABOVE, border_before, opened, pack, seal, unpack
from panglot_worker.line import wire


class PipelinePool:
    """Takes results of the pool before, runs the stages of its own pool, and hands results to the next pool."""

    def __init__(self, dialect: Dialect, pool: Dict[str, Any]) -> None:
        if dialect.slots > 1:
            raise ScriptError(
                "a script that runs several requests at once cannot be split into pools",
                dialect.package.script,
                fix="leave the pools out, or make its functions plain ones",
            )
        self.dialect = dialect
        self.pool = pool

    def of(self, whole: Stages) -> Stages:
        """The stages of this pool, given those of the whole script."""
        names = self.pool["stages"]
        infers = "inference" in names
        return Stages(
            decode=whole.decode if self.pool["first"] else self._receive,
            preprocess=whole.preprocess if "preprocess" in names else None,
            infer=whole.infer if infers else unchanged,
            infer_batch=whole.infer_batch if infers else None,
            postprocess=whole.postprocess if "postprocess" in names else None,
            encode=whole.encode if self.pool["last"] else self._hand_on,
            max_batch=whole.max_batch,
            by_route={route: self.of(stages) for route, stages in whole.by_route.items()},
            script_code=whole.script_code - self._ours(),
        )

    def _ours(self) -> FrozenSet[str]:
        """The stages at the borders between pools: there the script's own code does not run."""
        return frozenset(["decode"] * (not self.pool["first"]) + ["encode"] * (not self.pool["last"]))

    def _receive(self, request: Request) -> Any:
        body, key = request.body, self.dialect.port.row_key
        if key:
            body = opened(key, border_before(self.pool["stages"]), bytes(request.raw_head), body)
        request.context, request.rows, value = unpack(body)
        return value

    def _hand_on(self, output: Any, request: Request) -> Answer:
        if inspect.isgenerator(output):
            raise TypeError("an answer in parts cannot be handed to another pool: give postprocess no pool of its own")
        output = self.dialect.hand_on(output)
        pieces = pack((request.context, request.rows, output))
        key = self.dialect.port.row_key
        if key:
            pieces.insert(0, seal(key, self.pool["stages"][-1], bytes(request.raw_head), pieces))
        size = sum(map(len, pieces))
        # Written here, and not by `Port.reply`: joining the pieces first would copy them once more.
        if size >= SHARE_ABOVE and request.buffer and self.dialect.port.shared.put(request.buffer, pieces):
            return Answer("", wire.placed(size), 200, (), wire.PASS | wire.SHARED)
        return Answer("", b"".join(pieces), 200, (), wire.PASS)


def unchanged(value: Any) -> Any:
    """Stands in for an inference that another pool runs."""
    return value
