"""The values between the stages, sent with an answer to whoever asks for them: what `panglot check` compares.

Only workers started with `dev` listen, and only requests whose Accept names STAGES are recorded. Their answer is::

    PANGLOT-STAGES 1\\n | length u32 | JSON | bytes

with the answer itself, and by stage the leaves of its value. A value is taken down when its stage ends, because
scripts change what they were given. In a row of pools the record travels with the item from process to process.
"""

from __future__ import annotations

import functools
import inspect
import json
import struct
from contextvars import ContextVar
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from panglot_worker import current
from panglot_worker.dialects.base import Answer, Dialect, Request
from panglot_worker.leaves import Leaf, leaves
from panglot_worker.parts import Parted

STAGES = "application/x-panglot-stages"
MAGIC = b"PANGLOT-STAGES 1\n"
LENGTH = struct.Struct("<I")


class Record:
    """What one item was after each stage."""

    def __init__(self) -> None:
        self.stages: Dict[str, List[Leaf]] = {}

    def add(self, stage: str, value: Any) -> None:
        self.stages[stage] = list(leaves(value))

    def answer(self, answer: Answer) -> Answer:
        """The answer with everything that was recorded around it."""
        blobs: List[bytes] = [bytes(answer.body)]
        about = {
            "answer": {"status": answer.status, "content_type": answer.content_type, "headers": list(answer.headers)},
            "size": len(blobs[0]),
            "stages": {name: [leaf.row(blobs) for leaf in found] for name, found in self.stages.items()},
        }
        head = json.dumps(about).encode()
        return Answer(STAGES, b"".join((MAGIC, LENGTH.pack(len(head)), head, *blobs)), answer.status, answer.headers)


class Carried(NamedTuple):
    """A record on its way to the next pool, beside what the dialect itself sends along."""

    record: Record
    luggage: Any


_record: "ContextVar[Optional[Record]]" = ContextVar("record", default=None)
"""Of the item whose stages run here; async scripts have several in one process."""


def watch(dialect: Dialect) -> None:
    """Let the stages of a loaded dialect be recorded."""
    hooks = getattr(dialect, "hooks", None)
    if getattr(dialect, "asynchronous", False) and isinstance(hooks, dict):
        for name, stage in (("preprocess", "preprocess"), ("predict", "inference")):
            if name in hooks:
                hooks[name] = _awaited(hooks[name], stage)
    else:
        for name, stage in (("preprocess", "preprocess"), ("infer", "inference")):
            method = getattr(dialect, name)
            if not _is_default(method):
                setattr(dialect, name, _recorded(method, stage))
        if not _is_default(dialect.infer_batch):
            dialect.infer_batch = _each(dialect.infer_batch)  # type: ignore[method-assign,assignment]
    dialect.decode = _begun(dialect.decode)  # type: ignore[method-assign,assignment]
    last = not (_is_default(dialect.encode) and isinstance(dialect, Parted))
    dialect.encode = (_ended if last else _carried)(dialect.encode)  # type: ignore[method-assign,assignment]


def _is_default(method: Any) -> bool:
    """Whether a stage does nothing here: the dialect has none, or another pool does it."""
    own = getattr(method, "__func__", None)
    return any(own is vars(kind).get(method.__name__) for kind in (Dialect, Parted)) if own is not None else False


def _begun(decode: Callable[[Request], Any]) -> Callable[[Request], Any]:
    def begin(request: Request) -> Any:
        value = decode(request)
        carried = request.luggage
        record = None
        if isinstance(carried, Carried):
            record, request.luggage = carried
        elif STAGES.encode() in request.head.accept:
            record = Record()
            record.add("decode", value)
        if record is not None:
            request.record = record
        _record.set(record)
        return value

    return begin


def _recorded(method: Callable[[Any], Any], stage: str) -> Callable[[Any], Any]:
    @functools.wraps(method)
    def run(value: Any) -> Any:
        result = method(value)
        record = _record.get()
        if record is not None and not inspect.isgenerator(result):
            record.add(stage, result)
        return result

    return run


def _awaited(hook: Callable[[Any], Any], stage: str) -> Callable[[Any], Any]:
    if inspect.isasyncgenfunction(hook):
        return hook

    async def run(value: Any) -> Any:
        result = hook(value)
        result = await result if inspect.isawaitable(result) else result
        record = _record.get()
        if record is not None:
            record.add(stage, result)
        return result

    return run


def _each(infer_batch: Callable[[List[Any]], Any]) -> Callable[[List[Any]], Any]:
    """A batch call: one result per item of those in progress."""

    def run(values: List[Any]) -> Any:
        results = infer_batch(values)
        requests = list(current.running)
        if len(requests) == len(values) and hasattr(results, "__len__") and len(results) == len(values):
            for request, result in zip(requests, results):
                record = getattr(request, "record", None)
                if record is not None:
                    record.add("inference", result)
        return results

    return run


def _carried(encode: Callable[[Any, Request], Answer]) -> Callable[[Any, Request], Answer]:
    def hand_on(output: Any, request: Request) -> Answer:
        record: Optional[Record] = getattr(request, "record", None)
        if record is not None:
            request.luggage = Carried(record, request.luggage)
        return encode(output, request)

    return hand_on


def _ended(encode: Callable[[Any, Request], Answer]) -> Callable[[Any, Request], Answer]:
    def end(output: Any, request: Request) -> Answer:
        record: Optional[Record] = getattr(request, "record", None)
        if record is not None:
            record.add("final", output)
        answer = encode(output, request)
        return answer if record is None else record.answer(answer)

    return end
