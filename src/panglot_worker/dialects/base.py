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
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

from panglot_worker.bodies import codec, streams
from panglot_worker.bodies.magic import media_type
from panglot_worker.errors import BAD_RESULT, SCRIPT_ERROR, ClientError, message_of
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.line.port import Port
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec

if TYPE_CHECKING:
    import asyncio

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
    pool: Dict[str, Any] = {}
    """The pool of a row this worker belongs to: its name, its stages, and whether it is the first or the last.

    Empty when the package is one pool, which does everything. `panglot.engine.pools.pipeline` makes it.
    """
    memory: Dict[str, Any] = {}
    """The memory shared with the front, as `sharing.SharedMemory` takes it."""
    kept: int = -1
    """An open file of memory that outlives this worker; what is in it is for its successor. -1: there is none."""
    dialect_folder: str = ""
    """Where the dialect's worker half lies; empty: here."""

    def does(self, stage: str) -> bool:
        """Whether a stage runs in this worker. Only one that does `inference` needs the model."""
        return not self.pool or stage in self.pool["stages"]

    def platform(self, kind: str) -> str:
        """The folder of modules that scripts of the dialect import: those that `always` win, or the `fallback`."""
        return os.path.join(self.dialect_folder or os.path.join(HERE, self.dialect), "platform", kind)


class Request:
    """An item on its way through the stages."""

    __slots__ = (
        "_head",
        "body",
        "buffer",
        "context",
        "decoded",
        "files",
        "id",
        "lies",
        "raw_head",
        "record",
        "rows",
        "seconds_left",
        "since",
    )  # fmt: skip
    record: Any
    """What `recording` keeps of the stages for whoever asked; the attribute is not there otherwise."""
    since: float
    """The moment that `seconds_left` counts from, where the dialect notes it."""

    def __init__(self, item: wire.Item) -> None:
        self.id, self.seconds_left, self.raw_head, self.body, self.lies, self.buffer = item
        self.files: Any = [] if self.lies else ()
        """Weak references to what a dialect has made of a body in shared memory without copying it; see `let_go`."""
        self._head: Optional[wire.Head] = None
        self.rows = 1
        """How many rows a dialect whose requests share runs by rows has seen in it."""
        self.context: Any = None
        """What a dialect notes while it decodes, for `encode`; it travels along when those are processes apart."""
        self.decoded: Optional[Tuple[Any, float]] = None
        """What `decode` gave, and the seconds it took, where that was done before its turn (`intake`)."""

    def let_go(self) -> None:
        """Leave the shared memory the body lies in. What the script keeps beyond its call gets a copy first."""
        self.body = b""
        if self.files:
            self.keep_files()

    def keep_files(self) -> None:
        """Copy what a dialect has made of a body in shared memory and something still refers to."""
        for reference in self.files:
            file = reference()
            if file is not None:
                file.keep()

    @property
    def head(self) -> wire.Head:
        if self._head is None:
            self._head = wire.Head.unpack(self.raw_head)
        return self._head

    @property
    def content_type(self) -> str:
        """The Content-Type, of which nearly every decode wants to know nothing but that."""
        raw = self.raw_head.split(b"\0", 3)[2] if self._head is None else self._head.content_type
        return raw.decode("latin-1")

    @property
    def has_tensors(self) -> bool:
        """Whether it came with tensors, by the Open Inference Protocol."""
        return self.raw_head.count(b"\0") >= wire.NATIVE_FIELDS

    def become(self, head: wire.Head, body: wire.Buffer) -> None:
        """Be what a client of the platform would have sent instead."""
        self._head, self.body = head, body


class Answer(NamedTuple):
    """An encoded answer; `headers` are further lines such as `warning: …`."""

    content_type: str
    body: wire.Buffer
    status: int = 200
    headers: Sequence[str] = ()
    flags: int = 0
    """Flags of its reply, such as `wire.PASS`."""


class Problem(NamedTuple):
    """A failure the front words in the platform's manner. `traceback` goes to the log, never to a client."""

    status: int
    code: str
    message: str
    traceback: str = ""
    details: Optional[Dict[str, Any]] = None
    """What is told besides, where the platform's manner has room for it: only what JSON can hold."""


class AsksForRow(Exception):
    """A script's own wish, found while it was imported: these pools in a row instead of one process for all.

    Each is a dict with `name`, `workers` and, for those that take batches, `max_batch`; `stages` as in `Package.pool`.
    """

    def __init__(self, pools: List[Dict[str, Any]]) -> None:
        super().__init__("the script asks for %d pools" % len(pools))
        self.pools = pools


class Stages(NamedTuple):
    """What a loaded script does with an item. Frozen: whoever wants a stage changed makes a copy with `_replace`.

    Every stage gets one item, so that an item's failure is its own. One that is None does not exist: it costs nothing
    and is not timed.
    """

    decode: Callable[[Request], Any]
    infer: Callable[[Any], Any]
    encode: Callable[[Any, Request], Answer]
    preprocess: Optional[Callable[[Any], Any]] = None
    postprocess: Optional[Callable[[Any], Any]] = None
    infer_batch: Optional[Callable[[List[Any]], Sequence[Any]]] = None
    """Of scripts that take several items in one call: one result for each. `infer` then does the same with one."""
    max_batch: Optional[int] = None
    """The most items of such a call, where the script itself says it."""
    by_route: Mapping[bytes, Any] = {}
    """Of scripts with several routes: the stages of each, by `Head.route`. A batch never holds items of two."""
    decodes_ahead: bool = False
    """Whether `decode` is code of ours alone, so that it may run on another thread while the script runs a batch."""


class TensorStages(NamedTuple):
    """How a loaded script takes tensors itself: what stands in for `decode` and `encode` of its Stages.

    The stages between are the same. Everything else, `panglot_worker.items.tensor_adapter` does.
    """

    decode: Callable[[Infer, Request], Any]
    """The value for the next stage, of inputs that are whole tensors. Raises ClientError for those it does not take."""
    encode: Callable[[Any, Request], List[Tensor]]
    """The outputs, of what the last stage gave; the adapter leaves out those that were not asked for."""
    inputs: Sequence[TensorSpec] = ()
    outputs: Sequence[TensorSpec] = ()
    """What the script takes and gives, as far as that is known before it runs."""
    platform: str = "panglot_python"
    rows: bool = False
    """Whether the first size of every tensor counts rows, which share runs with those of other requests."""
    takes_bodies: bool = True
    """Whether a single element of BYTES is the native body, for the `decode` of Stages."""
    parameters: Optional[Callable[[Any], Dict[str, Any]]] = None
    """What is told beside the outputs, of what the last stage gave: truth values, numbers and texts by name."""
    is_last: Callable[[Any], bool] = lambda part: False
    """Whether a part of an answer is known to be its last; else nobody knows before the script ends."""


class Parts(NamedTuple):
    """How an answer in parts is written."""

    content_type: str
    encode: Callable[[Any], bytes]
    end: Callable[[], wire.Buffer] = bytes
    """What is sent when there are no more."""


class TensorAdapting(Protocol):
    """What `panglot_worker.items.tensor_adapter.TensorAdapter` does for the code that runs items.

    The rest of its work it does in `decode` and `encode`.
    """

    def parts(self, request: Request) -> Parts:
        """How an answer in parts is written. Raises ClientError where there may be none."""

    def failure(self, error: BaseException, answer: Union[Answer, Problem], request: Request) -> Union[Answer, Problem]:
        """A failure in the words of the protocol, given those of the platform."""


class Dialect:
    """A convention scripts are written in. Every method, and every stage, runs on the worker's main thread.

    Exceptions of the stages are turned into an answer by `failure`.
    """

    slots = 1
    """How many items may be in the worker at once."""
    server = "panglot_worker.items.running:serve"
    """What serves it: a function of dialect, stages, port and `rerun`."""
    workers: Optional[int] = None
    """How many workers the script itself asks for."""
    max_batch: Optional[int] = None
    """The most items the script itself takes in one call; the setting may say less."""
    streams = True
    """Whether a generator that `infer` returns is an answer in parts."""
    port: Port
    """The line to the front, there before `load`."""
    tensor_adapter: Optional[TensorAdapting] = None
    """What lets requests with tensors in, there after `load`."""

    nan_by_default = "null"
    """What NaN in an answer becomes where no setting says it; see `jsontext.dumps`."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.limits = codec.Limits(**package.settings.get("limits", {}))
        self.nan = str(package.settings.get("nan", self.nan_by_default))
        self._event_loop: Optional["asyncio.AbstractEventLoop"] = None

    @property
    def may_ask_for_row(self) -> bool:
        """Whether `load` may still raise AsksForRow: not in a pool, and not where all must be one process."""
        return not self.package.pool and bool(self.package.settings.get("rows"))

    def warn(self, message: str) -> None:
        """Write a line to the server's log, for whoever runs it."""
        self.port.tell(wire.EVENT, {"type": "warning", "message": message})

    def note(self, message: str) -> None:
        """Write a line to the server's log that needs nobody's attention."""
        self.port.tell(wire.EVENT, {"type": "note", "message": message})

    def count(self, series: str, delta: float = 1) -> None:
        """Add to a counter of `/metrics`: one of the contract's, or of `panglot.metrics.counters`, with its labels."""
        self.port.tell(wire.METRIC, {series: delta})

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
        """How the script takes tensors itself, asked once after `load`; None: as the bodies of its platform."""
        return None

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """The content type and the body that a client of the platform sends for such content: a picture, JSON, text."""
        return media_type(content), content

    # Bodies: what most dialects want

    def read(self, request: Request) -> Any:
        """The value of a body by its Content-Type, see `codec.decode`. Raises ClientError."""
        kept = request.files if request.lies else None
        return codec.decode(request.content_type, request.body, self.limits, kept)

    def answer(self, value: Any, request: Request, status: int = 200, headers: Sequence[str] = ()) -> Answer:
        """A result as the header Accept would have it, see `codec.encode`. Raises EncodeError."""
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
            asyncio.set_event_loop(self._event_loop)
        return self._event_loop

    def settled(self, value: Any) -> Any:
        """What a function of the script gave, awaited where that is needed."""
        return self.event_loop().run_until_complete(value) if inspect.isawaitable(value) else value

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """How an exception of a stage is answered. A dialect without a rule of its own has that of plain scripts."""
        status = getattr(error, "status", None)
        if type(status) is int and 400 <= status <= 499:
            if isinstance(error, ClientError):
                return Problem(status, error.code, message_of(error), details=sendable(error.details))
            return Problem(status, "bad_request", message_of(error) or type(error).__name__)
        if stage == "encode":
            return Problem(500, "bad_result", BAD_RESULT)
        return Problem(500, "script_error", SCRIPT_ERROR)

    def hand_on(self, output: Any) -> Any:
        """What the next pool of a row gets of an output. Raises what is to be answered here instead, as a failure."""
        return output

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether a failure is the client's fault, so that the log need not tell it."""
        return 400 <= answer.status <= 499 or is_clients_fault(error)

    def close(self) -> None:
        """Let the script clean up: the worker is about to end."""


def warned(warning: str) -> Tuple[str, ...]:
    """The header line that says what was changed in a result, if anything was."""
    return ("x-panglot-warning: " + warning,) if warning else ()


def sendable(details: Dict[Any, Any]) -> Optional[Dict[str, Any]]:
    """What a script tells beside a message, as JSON has it. Raises EncodeError where JSON cannot hold it."""
    if not details:
        return None
    told: Dict[str, Any] = json.loads(codec.encode(details, "", codec.Limits(output_bytes=LONGEST_DETAILS)).body)
    return told


def is_clients_fault(error: BaseException) -> bool:
    status = getattr(error, "status", None)
    return isinstance(error, ClientError) or (type(status) is int and 400 <= status <= 499)
