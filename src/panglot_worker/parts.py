"""A dialect in a row of pools: this worker does some of the stages, other processes do the rest."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Sequence, Union

from panglot_worker import wire
from panglot_worker.dialects.base import Answer, Dialect, Problem, Request
from panglot_worker.handoff import Handoff, reading, writing
from panglot_worker.loading import ScriptError
from panglot_worker.port import Port
from panglot_worker.running import Runner, own_stage, run_frames


class Parted(Dialect):
    """Runs the stages of one pool. What comes before is received from the pool before, the rest is handed on."""

    server = "panglot_worker.parts:serve"

    def __init__(self, inner: Dialect, part: Dict[str, Any]) -> None:
        super().__init__(inner.package)
        if inner.slots > 1:
            raise ScriptError(
                "a script that runs several requests at once cannot be split into pools",
                inner.package.script,
                fix="leave the pools out, or make its functions plain ones",
            )
        self.inner = inner
        self.port = inner.port
        self.handoff = Handoff(
            writing(*part["writes"]) if part.get("writes") else None,
            reading(*part["reads"]) if part.get("reads") else None,
        )
        self.streams = inner.streams and bool(part["last"])
        self._arrange(part)

    def _arrange(self, part: Dict[str, Any]) -> None:
        inner, stages = self.inner, part["stages"]
        for stage in ("preprocess", "postprocess"):
            own = own_stage(inner, stage) if stage in stages else None
            if own is not None:
                setattr(self, stage, own)
        if "inference" in stages:
            self.batched, self.max_batch, self.workers = inner.batched, inner.max_batch, inner.workers
            self.infer, self.infer_batch = inner.infer, inner.infer_batch  # type: ignore[method-assign]
        if part["first"]:
            self.decode = inner.decode  # type: ignore[method-assign]
        if part["last"]:
            self.encode = inner.encode  # type: ignore[method-assign]

    # Between the pools

    def decode(self, request: Request) -> Any:
        request.luggage, value = self.handoff.unpack(request.id, request.body)
        return value

    def encode(self, output: Any, request: Request) -> Answer:
        if inspect.isgenerator(output):
            raise TypeError("an answer in parts cannot be handed to another pool: give postprocess no pool of its own")
        body, shared = self.handoff.pack((request.luggage, output), request.slot)
        return Answer("", body, 200, (), wire.PASS | wire.SHARED if shared else wire.PASS)

    # What the script's own dialect decides

    def infer(self, value: Any) -> Any:
        return value

    def infer_batch(self, values: List[Any]) -> Sequence[Any]:
        return values

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        return self.inner.failure(error, stage, request)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        return self.inner.blames_client(error, answer)

    def stream_type(self, request: Request) -> str:
        return self.inner.stream_type(request)

    def encode_part(self, output: Any, content_type: str) -> bytes:
        return self.inner.encode_part(output, content_type)

    def close(self) -> None:
        self.inner.close()


def serve(dialect: Parted, port: Port, rerun: bool) -> str:
    """As `running.serve`, and tells after each frame which slots it no longer looks at."""

    def after() -> None:
        items = dialect.handoff.settled()
        if items:
            port.send([wire.ids_frame(wire.FREE, items, port.generation)])

    return run_frames(Runner(dialect, port, rerun), port, after)
