"""The stages that a dialect makes of a script, and the answers that they give."""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from panglot_worker.dialects.request import Request
from panglot_worker.line import wire
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec


class Answer(NamedTuple):
    """An encoded answer; `headers` are further lines such as `warning: …`."""

    content_type: str
    body: wire.Buffer
    status: int = 200
    headers: Sequence[str] = ()
    flags: int = 0
    """Flags of its reply, such as `wire.PASS`."""


class Problem(NamedTuple):
    """A failure, which the front writes in the platform's form. `traceback` goes to the log, never to a client."""

    status: int
    code: str
    message: str
    traceback: str = ""
    details: Optional[Dict[str, Any]] = None
    """Further fields for the client, where the platform's errors can have some: only JSON values."""


def warned(warning: str) -> Tuple[str, ...]:
    """The header line that says what was changed in a result, if anything was."""
    return ("x-panglot-warning: " + warning,) if warning else ()


BETWEEN = frozenset(("preprocess", "inference", "postprocess"))
"""The stages between `decode` and `encode`, which are always the script's."""


class Stages(NamedTuple):
    """What a loaded script does with an item. Frozen: to change a stage, make a copy with `_replace`.

    Every stage gets one item, so that an item's failure is its own. A stage of None is left out: it costs nothing and
    is not timed.
    """

    decode: Callable[[Request], Any]
    infer: Callable[[Any], Any]
    encode: Callable[[Any, Request], Answer]
    preprocess: Optional[Callable[[Any], Any]] = None
    postprocess: Optional[Callable[[Any], Any]] = None
    infer_batch: Optional[Callable[[List[Any]], Sequence[Any]]] = None
    """For scripts that take several items in one call: one result for each. `infer` does the same with one item."""
    max_batch: Optional[int] = None
    """The most items of such a call, where the script itself says it."""
    by_route: Mapping[bytes, Any] = {}
    """For scripts with several routes: the stages of each, by `Head.route`. A batch never has items of two routes."""
    decodes_ahead: bool = False
    """Whether `decode` may run on another thread while the script runs a batch. Only Panglot's own code may."""
    script_code: FrozenSet[str] = BETWEEN
    """The stages that run code of the script, by their names in `wire.STAGES`.

    A script may have its own way to read a body or to write an answer: then `decode` or `encode` belong here too. Where
    it fails there, the script is to blame: 500, a traceback in the log, and the worker may be sick.
    """


class TensorStages(NamedTuple):
    """How a loaded script takes tensors itself: these functions replace `decode` and `encode` of its Stages.

    The stages between stay the same. `panglot_worker.items.tensors.adapter` does all other work.
    """

    decode: Callable[[Infer, Request], Any]
    """The value for the next stage, made of whole tensors. Raises ClientError for inputs that do not fit the script."""
    encode: Callable[[Any, Request], List[Tensor]]
    """The outputs, from the value of the last stage; the adapter removes outputs that were not requested."""
    inputs: Sequence[TensorSpec] = ()
    outputs: Sequence[TensorSpec] = ()
    """The tensors that the script takes and gives, as far as they are known before it runs."""
    platform: str = "panglot_python"
    rows: bool = False
    """Whether the first size of every tensor counts rows. Rows of several requests may share a run."""
    takes_bodies: bool = True
    """Whether a single element of BYTES is the native body, for the `decode` of Stages."""
    parameters: Optional[Callable[[Any], Dict[str, Any]]] = None
    """Parameters beside the outputs, from the value of the last stage: truth values, numbers and texts by name."""
    needs_inputs: bool = True
    """Whether a request without any inputs is refused."""
    is_last: Callable[[Any], bool] = lambda part: False
    """Whether a part of an answer is known to be its last one; where it is not, only the end of the script tells."""
    needs: Optional[Sequence[str]] = None
    """The inputs that every request must have, where inputs of other names or types are refused; None: they are not."""


class Parts(NamedTuple):
    """How an answer in parts is written."""

    content_type: str
    encode: Callable[[Any], bytes]
    end: Callable[[], wire.Buffer] = bytes
    """The bytes that are sent after the last part."""
