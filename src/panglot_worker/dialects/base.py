"""The contract between a worker and a dialect."""

from __future__ import annotations

import inspect
import json
import os
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

from panglot_worker.bodies import codec, streams
from panglot_worker.bodies.magic import media_type
from panglot_worker.dialects.request import Request
from panglot_worker.dialects.stages import BETWEEN, Answer, Parts, Problem, Stages, TensorStages, warned
from panglot_worker.errors import BAD_RESULT, SCRIPT_ERROR, ClientError, Interrupted, message_of
from panglot_worker.hints.spelling import file_and_line
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.line.port import Port

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "BETWEEN",
    "Answer",
    "AsksForPipeline",
    "Dialect",
    "Interrupting",
    "ItemServer",
    "Package",
    "Parts",
    "Problem",
    "Request",
    "Stages",
    "TensorAdapting",
    "TensorStages",
    "is_clients_fault",
    "sendable",
    "warned",
]  # fmt: skip

LONGEST_DETAILS = 1 << 16
HERE = os.path.dirname(os.path.abspath(__file__))


class Package(NamedTuple):
    """What the front says about the package when it starts a worker."""

    name: str
    folder: str
    script: str
    dialect: str
    arguments: List[str]
    options: Dict[str, Any]
    settings: Dict[str, Any]
    worker: int = 0
    """Which of the package's workers this is, from 0."""
    run_folder: str = ""
    """The private folder to run in; empty: the package's own."""
    input_folder: str = ""
    """The folder for files of requests, removed when this worker has ended in any way; empty: there is none."""
    pool: Dict[str, Any] = {}
    """The pool of a pipeline this worker belongs to: its name, its stages, and whether it is the first or the last.

    Empty when the package is one pool, which does everything. `panglot.engine.pools.pipeline` makes it.
    """
    memory: Dict[str, Any] = {}
    """The memory shared with the front, as `sharing.SharedMemory` takes it."""
    retained: int = -1
    """A descriptor of memory that outlives this worker and passes its content to the successor. -1: there is none."""
    dialect_folder: str = ""
    """The folder with the dialect's worker half, where another distribution has it; empty: it is here."""

    def does(self, stage: str) -> bool:
        """Whether a stage runs in this worker. Only one that does `inference` needs the model."""
        return not self.pool or stage in self.pool["stages"]

    def platform(self, kind: str) -> str:
        """The folder of modules that scripts of the dialect import: those that `always` win, or the `fallback`."""
        return os.path.join(self.dialect_folder or os.path.join(HERE, self.dialect), "platform", kind)


class AsksForPipeline(Exception):
    """A script's own wish, found while it was imported: a pipeline of these pools instead of one process for all.

    Each is a dict with `name`, `workers` and, for those that take batches, `max_batch`; `stages` as in `Package.pool`.
    """

    def __init__(self, pools: List[Dict[str, Any]]) -> None:
        super().__init__("the script asks for %d pools" % len(pools))
        self.pools = pools


class TensorAdapting(Protocol):
    """What `panglot_worker.items.tensors.adapter.TensorAdapter` does for the code that runs items.

    The rest of its work it does in `decode` and `encode`.
    """

    def parts(self, request: Request) -> Parts:
        """How an answer in parts is written. Raises ClientError where there may be none."""

    def failure(self, error: BaseException, answer: Union[Answer, Problem], request: Request) -> Union[Answer, Problem]:
        """The protocol's error for a failure, given the platform's error."""


class ItemServer(Protocol):
    """Runs the items of a dialect: `panglot_worker.items.running.Runner`, or a server of the dialect's own."""

    def end(self, why: str) -> None:
        """Take no more items once the running items have their answers."""

    def resize(self, slots: int) -> None:
        """Run at most so many items at once from now on."""


class Interrupting(Protocol):
    """What `panglot_worker.items.interrupting.Interrupter` does for the code that runs items."""

    def around(self, stages: Stages) -> Stages:
        """The stages, with an exception raised in code of the script where its call is to end."""

    def has_ended(self, item_id: int) -> bool:
        """Whether the call of this item was interrupted."""

    def forget(self, item_id: int) -> None:
        """Note that the front is told of the end of this item."""

    def left_processes(self) -> bool:
        """Whether there are processes that were not there when the script was loaded."""


class Dialect:
    """A convention scripts are written in. Every method, and every stage, runs on the worker's main thread.

    Exceptions of the stages are turned into an answer by `failure`.
    """

    slots = 1
    """How many items may be in the worker at once."""
    server = "panglot_worker.items.serving:serve"
    """The function that serves items, given dialect, stages, port and `rerun`."""
    workers: Optional[int] = None
    """How many workers the script itself asks for."""
    max_batch: Optional[int] = None
    """The most items the script itself takes in one call; the setting may say less."""
    streams = True
    """Whether a generator that `infer` returns is an answer in parts."""
    status_blames_client = True
    """Whether an answer of 400 to 499 says that the client is to blame. Where a platform answers failures of the script
    with these statuses too, only a ClientError says so, and the log has all other failures."""
    captured_output = 0
    """How many characters of what a call prints `Request.printed` holds, the last ones; 0: nothing is captured. Only
    where one call runs at a time, without batches."""
    reads_bars = False
    """Whether progress bars in the captured standard error, as tqdm draws them, tell how far the call is."""
    port: Port
    """The line to the front, there before `load`."""
    stages: Optional[Stages] = None
    """The result of `load`; None until it has returned."""
    interrupter: Optional[Interrupting] = None
    """Ends calls that nobody waits for, where the setting `on_leave` is `interrupt`."""
    is_replaced = False
    """Whether `replace_worker` was called."""
    serving: Optional[ItemServer] = None
    """Runs the items; None until serving begins."""
    tensor_adapter: Optional[TensorAdapting] = None
    """Adapts requests with tensors; None until `load` has returned."""

    nan_by_default = "null"
    """The value for NaN in answers where no setting gives one; see `jsontext.dumps`."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.limits = codec.Limits(**package.settings.get("limits", {}))
        self.nan = str(package.settings.get("nan", self.nan_by_default))
        self._event_loop: Optional["asyncio.AbstractEventLoop"] = None

    @property
    def may_ask_for_pipeline(self) -> bool:
        """Whether `load` may still raise AsksForPipeline: not in a pool, and not where all must be one process."""
        return not self.package.pool and bool(self.package.settings.get("may_be_pipeline"))

    def warn(self, message: str) -> None:
        """Write a line to the server's log, for its operator."""
        self.port.tell(wire.EVENT, {"type": "warning", "message": message})

    def note(self, message: str) -> None:
        """Write a line to the server's log that needs nobody's attention."""
        self.port.tell(wire.EVENT, {"type": "note", "message": message})

    def count(self, series: str, delta: float = 1) -> None:
        """Add to a counter of `/metrics`: one of the contract's, or of `panglot.metrics.counters`, with its labels."""
        self.port.tell(wire.METRIC, {series: delta})

    # What a dialect may do while it serves

    def report_progress(self, request: Request, fraction: Optional[float] = None, text: Any = "") -> None:
        """Tell the front how far a call is: a part of 1, and a text or another value that JSON can hold."""
        event = {"type": "progress", "item": request.id, "fraction": fraction, "text": text}
        self.port.tell(wire.EVENT, event)

    def replace_worker(self, why: str) -> None:
        """End this worker once the call in progress has its answer. Another replaces it; it counts as no failure."""
        if self.serving is not None:
            self.is_replaced = True
            self.serving.end(why)

    def change_slots(self, slots: int) -> None:
        """Run so many items at once from now on, at least one. For dialects served by `items.concurrent`."""
        slots = max(1, slots)
        if slots != self.slots:
            self.slots = slots
            if self.serving is not None:
                self.serving.resize(slots)
            self.port.tell(wire.EVENT, {"type": "slots", "slots": slots})

    def runs_script(self, stage: str, request: Request) -> bool:
        """Whether a stage of a request runs code of the script."""
        stages = self._stages_for(request)
        return stage in (stages.script_code if stages is not None else BETWEEN)

    def _stages_for(self, request: Request) -> Optional[Stages]:
        stages = self.stages
        if stages is not None and stages.by_route:
            stages = stages.by_route.get(request.head.route, stages)
        return stages

    # Loading

    def load(self, progress: Callable[[str], None]) -> Optional[Stages]:
        """Import and construct the script, and return its stages; whatever it raises fails the load.

        None where the dialect's own `server` takes items without stages.
        """
        raise NotImplementedError

    def describe(self) -> Description:
        """The description of the API for READY, once, after `load`. Other keys fail the load."""
        raise NotImplementedError

    def warm_up(self, stages: Stages) -> Stages:
        """Run the script's own example once through all stages, and return them. Raises what the script raises."""
        return stages

    def tensors(self) -> Optional[TensorStages]:
        """How the script itself takes tensors, read once after `load`; None: as the bodies of its platform."""
        return None

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """The content type and the body that a client of the platform sends for such content: a picture, JSON, text."""
        return media_type(content), content

    # Bodies: what most dialects want

    def read(self, request: Request) -> Any:
        """The value of a body by its Content-Type, see `codec.decode`. Raises ClientError."""
        # Files of a body in shared memory are views of it. `Request.release` copies the views that the script keeps.
        views = request.files if request.location else None
        return codec.decode(request.content_type, request.body, self.limits, views)

    def answer(self, value: Any, request: Request, status: int = 200, headers: Sequence[str] = ()) -> Answer:
        """A result in the type that the header Accept asks for, see `codec.encode`. Raises EncodeError."""
        accept = request.head.accept.decode("latin-1")
        content_type, body, warning = codec.encode(value, accept, self.limits, self.nan)
        return Answer(content_type, body, status, (*headers, *warned(warning)))

    def json_answer(self, value: Any, status: int = 200, headers: Sequence[str] = ()) -> Answer:
        """A result as compact JSON. Raises EncodeError."""
        body, warning = codec.encode_json(value, self.limits, self.nan)
        return Answer(codec.JSON, body, status, (*headers, *warned(warning)))

    def stream_type(self, request: Request) -> str:
        """The content type of an answer that arrives in parts: server-sent events, or lines of JSON by Accept."""
        return streams.chosen_type(request.head.accept)

    def encode_part(self, output: Any, content_type: str) -> bytes:
        """One part of an answer that arrives in parts, as bytes of that content type: JSON."""
        return streams.written(codec.encode(output, "", self.limits, self.nan).body, content_type)

    # Functions that are awaited

    def event_loop(self) -> "asyncio.AbstractEventLoop":
        """The one event loop of this worker, made when it is first needed."""
        if self._event_loop is None:
            import asyncio

            self._event_loop = asyncio.new_event_loop()
            # Scripts call `asyncio.get_event_loop()` outside of coroutines; it must be the loop their functions run on.
            asyncio.set_event_loop(self._event_loop)
        return self._event_loop

    def settled(self, value: Any) -> Any:
        """The result of a function of the script, awaited where it is awaitable."""
        return self.event_loop().run_until_complete(value) if inspect.isawaitable(value) else value

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """How an exception of a stage is answered. A dialect without its own rule has the rule of plain scripts."""
        status = getattr(error, "status", None)
        if type(status) is int and 400 <= status <= 499:
            if isinstance(error, ClientError):
                return Problem(status, error.code, message_of(error), details=sendable(error.details))
            return Problem(status, "bad_request", message_of(error) or type(error).__name__)
        if stage == "encode" and not self.runs_script(stage, request):
            return Problem(500, "bad_result", BAD_RESULT)
        return Problem(500, "script_error", SCRIPT_ERROR)

    def cancelled(self, request: Request) -> None:
        """Remove what a request has stored. Its call was cancelled and has no answer: `encode` and `failure` may not
        have been called."""

    def result_function(self, request: Request) -> Optional[Callable[..., Any]]:
        """The function of the script that makes the answer of a request, for the log; None where it is not known.

        It is the last stage that is a function of the package. A dialect whose stages are its own methods has its own
        rule.
        """
        stages = self._stages_for(request)
        return None if stages is None else self.of_script(stages.postprocess, stages.infer_batch, stages.infer)

    def of_script(self, *candidates: Any) -> Optional[Callable[..., Any]]:
        """The first of these functions that is written in the package; None where none is."""
        starts = tuple(os.path.join(path, "") for path in (self.package.folder, self.package.run_folder) if path)
        return next(
            (func for func in candidates if func is not None and file_and_line(func)[0].startswith(starts)), None
        )

    def hand_on(self, output: Any) -> Any:
        """The value that the next pool of a pipeline gets for an output. An exception is answered by this pool."""
        return output

    def interruption(self) -> BaseException:
        """The exception to raise in the script when its call is interrupted: the platform's own where it has one."""
        return Interrupted("nobody waits for this call any more")

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether a failure is the client's fault, so that the log need not tell it."""
        return (self.status_blames_client and 400 <= answer.status <= 499) or is_clients_fault(error)

    def close(self) -> None:
        """Let the script clean up: the worker is about to end."""


def sendable(details: Dict[Any, Any]) -> Optional[Dict[str, Any]]:
    """The details that a script gives beside a message, in types of JSON. Raises EncodeError where JSON has none."""
    if not details:
        return None
    as_json: Dict[str, Any] = json.loads(codec.encode(details, "", codec.Limits(output_bytes=LONGEST_DETAILS)).body)
    return as_json


def is_clients_fault(error: BaseException) -> bool:
    """Whether an exception says that the request is wrong: by its class, or by a `status` of 400 to 499."""
    status = getattr(error, "status", None)
    return isinstance(error, ClientError) or (type(status) is int and 400 <= status <= 499)
