"""A script with `mosec.Worker` classes: each a pool of its own, or, as with `--inline`, all in one process."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Union

from panglot_worker.dialects.base import BETWEEN, Answer, Problem, Request, Stages
from panglot_worker.dialects.tiinfer import text
from panglot_worker.errors import EncodeError, ScriptError
from panglot_worker.items.results import one_each, with_one
from panglot_worker.items.splitting import one_by_one
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.scripts import current

if TYPE_CHECKING:
    from panglot_worker.dialects.tiinfer import Tiinfer

EVENTS = "text/event-stream"
PHRASES = {400: "Bad Request", 413: "Payload Too Large", 422: "Unprocessable Content", 500: "Internal Server Error"}


class Failed:
    """An item that failed in a stage; it takes no part in the following ones."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Packed(bytes):
    """Bytes of a worker's own `serialize_ipc`, for `deserialize_ipc` of the next worker."""


def title(number: int, stage: Dict[str, Any]) -> str:
    return "%s_%d" % (stage["worker"].__name__, number)


class Pipeline:
    """Constructs the workers and gives the dialect its stages."""

    def __init__(self, dialect: "Tiinfer", stages: List[Dict[str, Any]]) -> None:
        self.dialect = dialect
        self.mosec = importlib.import_module("mosec")
        self.stages = list(enumerate(stages, 1))
        self.workers: List[Any] = []
        self.pool = dialect.package.pool
        self.rerun = bool(dialect.package.settings.get("rerun", True))
        self.streaming = False
        for stage in stages:
            self._check(stage)

    def _check(self, stage: Dict[str, Any]) -> None:
        worker, env = stage["worker"], stage["env"]
        problem = ""
        if not (isinstance(worker, type) and issubclass(worker, self.mosec.Worker)):
            problem = "append_worker needs a subclass of mosec.Worker, not %r" % (worker,)
        elif any(type(stage[name]) is not int or stage[name] < 1 for name in ("num", "max_batch_size")):
            problem = "num and max_batch_size of %s must be 1 or more" % worker.__name__
        elif env is not None and (not isinstance(env, (list, tuple)) or len(env) != stage["num"]):
            problem = "env of %s must be a list of %d dicts, one for each process" % (worker.__name__, stage["num"])
        if problem:
            raise ScriptError(problem, self.dialect.package.script)

    def pools(self) -> List[Dict[str, Any]]:
        """A pool for each stage; none when there is only one."""
        return [
            {
                "name": title(number, stage),
                "workers": stage["num"],
                "max_batch": stage["max_batch_size"],
                "stages": ["preprocess", "inference", "postprocess"],
            }
            for number, stage in self.stages
            if len(self.stages) > 1
        ]

    def load(self, progress: Callable[[str], None]) -> Stages:
        """The stage of this pool; without one, all of them, in as many processes as the largest stage wants."""
        dialect, index = self.dialect, self.dialect.package.worker
        if self.pool:
            self._choose_own()
        self._warn_of_clashes()
        for number, stage in self.stages:
            kind = stage["worker"]
            progress("constructing " + kind.__name__)
            index = index % stage["num"]
            if stage["env"]:
                # Before the constructor, which reads them: CUDA_VISIBLE_DEVICES, say.
                os.environ.update(stage["env"][index])
            worker = kind()
            worker.worker_id = index + 1
            worker.stage = title(number, stage)
            worker.max_batch_size = stage["max_batch_size"]
            self.workers.append(worker)
        dialect.workers = max(stage["num"] for _, stage in self.stages)
        last = not self.pool or bool(self.pool["last"])
        self.streaming = last and isinstance(self.workers[-1], self.mosec.SSEWorker)
        if self.streaming:
            self.workers[-1].send_stream_event = self._send_part
        return self._choose_stages()

    def _warn_of_clashes(self) -> None:
        """Warn when stages set one variable differently: in one process they cannot."""
        names: Dict[str, List[Any]] = {}
        for _, stage in self.stages:
            for name, value in (stage["env"][0] if stage["env"] else {}).items():
                names.setdefault(name, []).append(value)
        clashing = sorted(name for name, values in names.items() if len(set(values)) > 1)
        if clashing:
            self.dialect.warn("the stages set %s differently; they share one process here" % ", ".join(clashing))

    def _choose_stages(self) -> Stages:
        largest = max(worker.max_batch_size for worker in self.workers)
        batched = largest > 1 or self.streaming
        if batched:
            self.dialect.max_batch = largest
        own_decode = self._overrides(self.workers[0], "deserialize")
        own_encode = self._overrides(self.workers[-1], "serialize")
        return Stages(
            decode=self._decode if own_decode else self.dialect.decode,
            preprocess=self._received if self.pool else None,
            infer=with_one(self._batch) if batched else self._one,
            infer_batch=self._batch if batched else None,
            postprocess=self._handed_on if self.pool else None,
            encode=self._encode,
            decodes_ahead=True,
            script_code=BETWEEN.union(name for name, own in (("decode", own_decode), ("encode", own_encode)) if own),
        )

    def _choose_own(self) -> None:
        own = [(number, stage) for number, stage in self.stages if title(number, stage) == self.pool["name"]]
        if not own:
            names = ", ".join(title(number, stage) for number, stage in self.stages)
            raise ScriptError(
                "there is no pool %s: the script's own stages are %s" % (self.pool["name"], names),
                self.dialect.package.script,
                fix="leave `pools` out; num of append_worker says how many processes each has",
            )
        self.stages = own

    def _overrides(self, worker: Any, method: str) -> bool:
        return getattr(type(worker), method) is not getattr(self.mosec.Worker, method)

    @property
    def functions(self) -> Sequence[Any]:
        """The script's functions that may make the result, the last first."""
        return [getattr(self.workers[-1], "forward", None)]

    def description(self) -> Description:
        names = [worker.stage for worker in self.workers]
        return {"entry": " > ".join(names), "stages": names, "summary": "", "streams": self.streaming}

    def warm_up(self) -> None:
        for worker in self.workers:
            examples = worker.multi_examples or ([worker.example] if worker.example is not None else [])
            for example in examples:
                worker.forward(example)

    # Between pools

    def _received(self, value: Any) -> Any:
        return self.workers[0].deserialize_ipc(bytes(value)) if isinstance(value, Packed) else value

    def _handed_on(self, output: Any) -> Any:
        """The output for the next pool, by the worker's own `serialize_ipc` where it has one."""
        if isinstance(output, Failed):
            raise output.error
        if not self.pool["last"] and self._overrides(self.workers[0], "serialize_ipc"):
            return Packed(self.workers[0].serialize_ipc(output))
        return output

    # Running

    def _one(self, value: Any) -> Any:
        for worker in self.workers:
            value = worker.forward(value)
        return value

    def _batch(self, values: Sequence[Any]) -> List[Any]:
        """Take items through the workers, one after the other. An item that fails is left behind; the others go on."""
        requests = list(current.running)
        items = list(values)
        for worker in self.workers:
            alive = [index for index, item in enumerate(items) if not isinstance(item, Failed)]
            for start in range(0, len(alive), worker.max_batch_size):
                part = alive[start : start + worker.max_batch_size]
                outputs = self._forward(worker, [items[index] for index in part], [requests[index] for index in part])
                for index, output in zip(part, outputs):
                    items[index] = output
        return items

    def _forward(self, worker: Any, values: List[Any], requests: List[Request]) -> Sequence[Any]:
        """The worker's outputs for these items, by one call; when that fails, by one call for each item, once."""
        # `panglot.requests()`, and the index of `send_stream_event`, are about the items of this call alone.
        current.running[:] = requests
        try:
            if worker.max_batch_size == 1:
                return [worker.forward(values[0])]
            return one_each(worker.forward(values), len(values))
        except BaseException as error:
            # A stream cannot run again: its clients may have parts of it already.
            if len(values) == 1 or not self.rerun or self.streaming:
                return [Failed(error)] * len(values)
            outcomes = one_by_one(with_one(worker.forward), zip(requests, values), error, self.dialect.port)
            return [Failed(each.error) if each.error is not None else each.output for each in outcomes]

    # Bodies

    def _decode(self, request: Request) -> Any:
        if not len(request.body):
            raise text.NoData
        return self.workers[0].deserialize(bytes(request.body))

    def _encode(self, output: Any, request: Request) -> Answer:
        if isinstance(output, Failed):
            raise output.error
        if self.streaming:
            # `_send_part` has sent all of it: this reply ends the stream.
            return Answer(EVENTS, b"")
        last = self.workers[-1]
        if not self._overrides(last, "serialize"):
            return self.dialect.encode(output, request)
        body = last.serialize(output)
        if not isinstance(body, (bytes, bytearray, memoryview)):
            raise EncodeError("serialize returned %s, not bytes" % type(body).__name__)
        if len(body) > self.dialect.limits.output_bytes:
            raise EncodeError("it is larger than %d bytes" % self.dialect.limits.output_bytes)
        return Answer(str(last.resp_mime_type), bytes(body))

    # Answers in parts

    def _send_part(self, event: str, index: int = 0) -> None:
        """`send_stream_event` of the last worker. While it warms up nobody listens."""
        if index < len(current.running):
            lines = str(event).split("\n")
            if not lines[-1]:
                lines.pop()
            body = "".join("data: %s\n" % line for line in lines) + "\n"
            part = wire.Reply(current.running[index].id, 200, wire.MORE, wire.NO_TIMES, EVENTS.encode(), body.encode())
            self.dialect.port.reply(part)

    def failure(self, problem: Problem) -> Union[Answer, Problem]:
        """How a failed request is answered: on a stream with 200, as the platform does, and an event."""
        if not self.streaming:
            return problem
        words = "SSE inference error: %d: %s: %s" % (problem.status, PHRASES.get(problem.status, ""), problem.message)
        self.dialect.count('panglot_answer_errors_total{key="event"}')
        return Answer(EVENTS, ("event: error\ndata: %s\n\n" % words.replace("\n", " ")).encode())
