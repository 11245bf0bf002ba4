"""Tensors on their way through a chain of models: the result of one model's worker is the input of the next one's.

The front calls the models of a chain one after the other (`panglot.engine.model_chains`), and passes on bodies that it
never reads. With every request a worker gets a `Hop`: it names the inputs of the model, and the tensors that go on. The
worker of the first model reads the client's request, the worker of the last model writes the client's answer. The
bodies between them have this form::

    length u32 | JSON, up to a border of 64 bytes | tensors, each up to such a border
"""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.line.many_buffers import many
from panglot_worker.tensors import tensors
from panglot_worker.tensors.infer import GRPC, Infer, WantedOutput, Wishes
from panglot_worker.tensors.tensors import Tensor, TensorSpec

LENGTH = struct.Struct("<I")
BORDER = 64
"""Tensors begin at multiples of this, so that arrays over them are aligned."""
MOST_KEPT, LONGEST_KEPT = 64, 65536
"""How many heads are kept, and how long each may be: clients choose their names and parameters."""
FREE = -1
UNFIT = "unfit"
"""The code of a refusal by the first worker: this request must go to the chain's own worker, which knows every case."""
NO_OUTPUT = "no_output"

Layout = Tuple[Tuple[str, str, tensors.Shape, int], ...]
"""The tensors of a body in their order: name, datatype, shape and bytes."""


class ChainError(ClientError):
    """A request that cannot go on through its chain. The front knows the code."""

    def __init__(self, message: str, code: str, status: int) -> None:
        super().__init__(message, code=code)
        self.answer_status = status


class Hop(NamedTuple):
    """What one worker of a chain does, as `Head.hop` says it in JSON."""

    inputs: Dict[str, str]
    """The names of its model's inputs, with the names of the chain for them."""
    outputs: Dict[str, str]
    keeps: List[str]
    """The names of the chain that later models, or the client, may need."""
    needed: Dict[str, str]
    """By name of the chain: the later model that needs the tensor."""
    answers: List[str]
    """All outputs of the chain, in their order."""
    last: bool = False
    takes: Optional[List[TensorSpec]] = None
    """For the first: the inputs that the chain takes from its client."""
    rows: int = 0
    """The most rows of a request; 0: tensors have no dimension of rows."""
    final: Sequence[str] = ()
    """The outputs of the last model: a request for none of them does not need the whole chain."""


class ChainPassage(NamedTuple):
    """The part of a request that travels through the stages of one worker beside its tensors."""

    hop: Hop
    client: Wishes
    said: bytes
    """The client's wishes and parameters, as they travel on."""
    kept: Dict[str, Tensor]
    """By name of the chain: the tensors that the worker got and passes on."""


class ReadHead(NamedTuple):
    """The meaning of the JSON of a body."""

    client: Wishes
    said: bytes
    parameters: Dict[str, Any]
    layout: Layout


class Handing:
    """Reads and writes the bodies between the models of a chain, for one worker. Texts recur, and are cached."""

    def __init__(self) -> None:
        self._hops: Dict[bytes, Hop] = {}
        self._known: Dict[bytes, ReadHead] = {}
        self._texts: Dict[Tuple[bytes, Layout], bytes] = {}

    def hop(self, text: bytes) -> Hop:
        """The hop in a request's head."""
        hop = self._hops.get(text)
        if hop is None:
            about = json.loads(text)
            if about["takes"] is not None:
                about["takes"] = [TensorSpec(*spec) for spec in about["takes"]]
            hop = _keep(self._hops, text, Hop(**about))
        return hop

    # In

    def first(self, hop: Hop, infer: Infer) -> Infer:
        """The request of a client for the first model. Raises ChainError where it is not for the chain."""
        _check_fit(hop, infer)
        client = infer.wishes
        wanted = [tuple(output) for output in client.wanted]
        wishes = [client.form.decode("ascii"), *client[1:4], wanted, *client[5:8]]
        said = json.dumps([wishes, infer.parameters], separators=(",", ":")).encode()
        return _for_model(hop, client, said, infer.parameters, infer.inputs)

    def handed(self, hop: Hop, body: wire.Buffer) -> Infer:
        """The request for a later model, from the body that the worker before has written."""
        view = memoryview(body)
        at = LENGTH.size + LENGTH.unpack_from(view)[0]
        known = self._read(bytes(view[LENGTH.size : at]))
        given = {}
        for name, datatype, shape, size in known.layout:
            raw = view[at : at + size]
            given[name] = (
                Tensor(name, datatype, shape, raw)
                if datatype != "BYTES"
                else tensors.from_elements(name, shape, tensors.split(name, raw))
            )
            at += size + -size % BORDER
        return _for_model(hop, known.client, known.said, known.parameters, given)

    def _read(self, text: bytes) -> ReadHead:
        known = self._known.get(text)
        if known is None:
            about = json.loads(text)
            wishes, parameters = about["said"]
            form, model, version, name, wanted, *more = wishes
            client = Wishes(
                form.encode("ascii"), model, version, name, tuple(WantedOutput(*output) for output in wanted), *more
            )
            said = json.dumps(about["said"], separators=(",", ":")).encode()
            layout = tuple((name, datatype, tuple(shape), size) for name, datatype, shape, size in about["tensors"])
            known = ReadHead(client, said, parameters, layout)
            # A request with a name of its own never comes again.
            if not client.id and len(text) <= LONGEST_KEPT:
                _keep(self._known, text, known)
        return known

    # Out

    def answers(self, carried: ChainPassage, given: List[Tensor]) -> List[Tensor]:
        """The outputs of the chain for its client, after the last model. Raises ChainError where one is missing."""
        values = _values(carried, given)
        return [values[name] for name in carried.hop.answers if name in values]

    def body(self, carried: ChainPassage, given: List[Tensor]) -> wire.Buffer:
        """The body for the next model. Raises ChainError where an output that is needed is missing."""
        values = _values(carried, given)
        layout: List[Tuple[str, str, tensors.Shape, int]] = []
        pieces: List[wire.Buffer] = [b""]
        for name in carried.hop.keeps:
            tensor = values.get(name)
            if tensor is not None:
                raw = tensor.raw()
                size = len(raw)
                layout.append((name, tensor.datatype, tensor.shape, size))
                pieces.append(raw)
                if size % BORDER:
                    pieces.append(bytes(-size % BORDER))
        pieces[0] = self._text(carried, tuple(layout))
        return many(*pieces)

    def _text(self, carried: ChainPassage, layout: Layout) -> bytes:
        text = self._texts.get((carried.said, layout))
        if text is None:
            text = b'{"said":%b,"tensors":%b}' % (carried.said, json.dumps(layout, separators=(",", ":")).encode())
            text += b" " * (-(LENGTH.size + len(text)) % BORDER)
            text = LENGTH.pack(len(text)) + text
            if not carried.client.id and len(text) <= LONGEST_KEPT:
                _keep(self._texts, (carried.said, layout), text)
        return text


def _keep(cache: Dict[Any, Any], key: Any, value: Any) -> Any:
    if len(cache) >= MOST_KEPT:
        # All at once: hostile clients can fill the cache, and a cleverer rule would cost each request.
        cache.clear()
    cache[key] = value
    return value


def _for_model(hop: Hop, client: Wishes, said: bytes, parameters: Dict[str, Any], given: Dict[str, Tensor]) -> Infer:
    """The request for one model of the chain, in its own names. It asks for no outputs: a model may leave some out."""
    inputs = {inner: Tensor(inner, *given[name][1:]) for inner, name in hop.inputs.items() if name in given}
    kept = {name: given[name] for name in hop.keeps if name in given}
    wishes = Wishes(GRPC, client.model, client.version, client.id, carried=ChainPassage(hop, client, said, kept))
    return Infer(wishes, inputs, parameters)


def _values(carried: ChainPassage, given: List[Tensor]) -> Dict[str, Tensor]:
    """All tensors by the chain's names, behind one model. Raises ChainError where one that is needed is missing."""
    hop, values = carried.hop, carried.kept
    made = {tensor.name: tensor for tensor in given}
    for inner, name in hop.outputs.items():
        tensor = made.get(inner)
        if tensor is not None:
            values[name] = Tensor(name, *tensor[1:])
        else:
            wanted = any(output.name == name for output in carried.client.wanted)
            needs = hop.needed.get(name, "the request" if wanted else "")
            if needs:
                raise ChainError("gave no output '%s' ('%s'), which %s needs" % (inner, name, needs), NO_OUTPUT, 500)
    return values


def _check_fit(hop: Hop, infer: Infer) -> None:
    """Raises ChainError unless a request has exactly the inputs of the chain, and needs the whole chain."""
    takes = hop.takes or ()
    rows: Set[int] = set()
    for name, datatype, expected in takes:
        tensor = infer.inputs.get(name)
        if tensor is None or tensor.datatype != datatype or len(tensor.shape) != len(expected):
            raise ChainError(UNFIT, UNFIT, 400)
        if not all(want in (FREE, size) for want, size in zip(expected, tensor.shape)):
            raise ChainError(UNFIT, UNFIT, 400)
        rows.update(tensor.shape[:1])
    if len(takes) != len(infer.inputs) or (hop.rows and (len(rows) != 1 or max(rows) > hop.rows)):
        raise ChainError(UNFIT, UNFIT, 400)
    wanted = [output.name for output in infer.wishes.wanted]
    if wanted and not (set(wanted) <= set(hop.answers) and set(wanted).intersection(hop.final)):
        raise ChainError(UNFIT, UNFIT, 400)
