"""The values between the stages, sent with the answer to a client that requests them: `panglot check` compares them.

Only workers started with `dev` listen, and only requests whose Accept names STAGES are recorded. Their answer is::

    PANGLOT-STAGES 1\\n | length u32 | JSON | bytes

with the answer itself, and for each stage the leaves of its value. A value is recorded when its stage ends, because
scripts change their arguments. In a pipeline the record travels with the item from process to process.
"""

from __future__ import annotations

import inspect
import json
import struct
from contextvars import ContextVar
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from panglot_worker.dialects.base import Answer, Package, Request, Stages
from panglot_worker.items.flattening import Leaf, leaves
from panglot_worker.line import wire
from panglot_worker.scripts import current

STAGES = "application/x-panglot-stages"
MAGIC = b"PANGLOT-STAGES 1\n"
LENGTH = struct.Struct("<I")


class Record:
    """The value of one item after each stage."""

    def __init__(self) -> None:
        self.stages: Dict[str, List[Leaf]] = {}

    def add(self, stage: str, value: Any) -> None:
        """Record the result of a stage. Where a stage has several results, each but the first has a number."""
        name, times = stage, 1
        while name in self.stages:
            times += 1
            name = "%s (%d)" % (stage, times)
        self.stages[name] = list(leaves(value))

    def answer(self, answer: Answer) -> Answer:
        """The answer, together with the whole record."""
        blobs: List[bytes] = [bytes(answer.body)]
        about = {
            "answer": {"status": answer.status, "content_type": answer.content_type, "headers": list(answer.headers)},
            "size": len(blobs[0]),
            "stages": {name: [leaf.row(blobs) for leaf in taken] for name, taken in self.stages.items()},
        }
        head = json.dumps(about).encode()
        return Answer(STAGES, b"".join((MAGIC, LENGTH.pack(len(head)), head, *blobs)), answer.status, answer.headers)


class Carried(NamedTuple):
    """A record on its way to the next pool, beside the dialect's own context."""

    record: Record
    context: Any


# State of this module: a stage gets its value alone, and cannot say to which item the value belongs.
_record: "ContextVar[Optional[Record]]" = ContextVar("record", default=None)
"""The record of the item whose stages run here; async scripts have several items in one process."""


def watched(stages: Stages, package: Package) -> Stages:
    """The stages of a loaded script, which record their results for requests that want them."""
    last = not package.pool or bool(package.pool["last"])
    infers = package.does("inference")
    main = _main(package)
    # `decodes_ahead` is left out: `decode` sets the record of the item that runs, on the thread that runs it.
    before = "preprocess" if main == "inference" else main + " preprocess"
    return Stages(
        decode=_begun(stages.decode),
        preprocess=_recorded(stages.preprocess, before) if stages.preprocess is not None else None,
        infer=_recorded(stages.infer, main) if infers else stages.infer,
        infer_batch=_each(stages.infer_batch, main) if stages.infer_batch is not None else None,
        postprocess=stages.postprocess,
        encode=(_ended if last else _carried)(stages.encode),
        max_batch=stages.max_batch,
        by_route={route: watched(own, package) for route, own in stages.by_route.items()},
        script_code=stages.script_code,
    )


def _main(package: Package) -> str:
    """The name of this worker's inference: in a pipeline, the name of its pool."""
    name = str(package.pool["name"]) if package.pool else ""
    return "inference" if name in ("", *wire.STAGES) else name


def begin(request: Request, value: Any) -> Optional[Record]:
    """Begin the record of a decoded item, if its request wants one."""
    if STAGES.encode() not in request.head.accept:
        return None
    request.record = record = Record()
    record.add("decode", value)
    return record


def record_of(request: Request) -> Optional[Record]:
    """The record of an item; None where its request wants none."""
    record: Optional[Record] = getattr(request, "record", None)
    return record


def _begun(decode: Callable[[Request], Any]) -> Callable[[Request], Any]:
    def decode_and_begin(request: Request) -> Any:
        value = decode(request)
        carried = request.context
        if isinstance(carried, Carried):
            record: Optional[Record]
            record, request.context = carried
            request.record = record
        else:
            record = begin(request, value)
        _record.set(record)
        return value

    return decode_and_begin


def _recorded(stage: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """The stage, which records its result; where that is awaited, once it is there."""

    def run(value: Any) -> Any:
        result = stage(value)
        record = _record.get()
        # Looking into a generator would use it up.
        if record is None or inspect.isgenerator(result) or inspect.isasyncgen(result):
            return result
        if inspect.isawaitable(result):
            return _awaited(result, record, name)
        record.add(name, result)
        return result

    return run


async def _awaited(coming: Any, record: Record, name: str) -> Any:
    result = await coming
    record.add(name, result)
    return result


def _each(infer_batch: Callable[[List[Any]], Any], name: str) -> Callable[[List[Any]], Any]:
    """A batch call: one result per item of those in progress."""

    def run(values: List[Any]) -> Any:
        results = infer_batch(values)
        requests = list(current.running)
        if len(requests) == len(values) and hasattr(results, "__len__") and len(results) == len(values):
            for request, result in zip(requests, results):
                record = record_of(request)
                if record is not None:
                    record.add(name, result)
        return results

    return run


def _carried(encode: Callable[[Any, Request], Answer]) -> Callable[[Any, Request], Answer]:
    def hand_on(output: Any, request: Request) -> Answer:
        record = record_of(request)
        if record is not None:
            request.context = Carried(record, request.context)
        return encode(output, request)

    return hand_on


def _ended(encode: Callable[[Any, Request], Answer]) -> Callable[[Any, Request], Answer]:
    def end(output: Any, request: Request) -> Answer:
        record = record_of(request)
        if record is not None:
            # Before `encode`, which may change its argument.
            record.add("final", output)
        answer = encode(output, request)
        return answer if record is None else record.answer(answer)

    return end
