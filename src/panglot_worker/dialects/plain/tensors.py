"""Tensors for plain scripts: arrays by name for `predict`, one item per row for `predict_batch`."""

from __future__ import annotations

import collections.abc
import inspect
from importlib import util
from typing import Any, Callable, Dict, List, NamedTuple, Optional, get_type_hints

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Request, TensorStages
from panglot_worker.dialects.plain.endpoints import Bodies, Endpoint
from panglot_worker.errors import ClientError
from panglot_worker.hints.arguments import Arguments
from panglot_worker.items.tensors.rows import Rows
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec

INPUTS = (TensorSpec("input", "BYTES", (1,)),)
OUTPUTS = (TensorSpec(outputs.OUTPUT, "BYTES", (1,)),)
LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)


class Taker(NamedTuple):
    """How one script takes tensors."""

    arrays: bool
    """Whether it gets arrays of numpy, or, where its interpreter has none, lists in lists."""
    bare: bool
    """Whether it gets the only tensor itself, not by name."""
    batched: bool
    written: Callable[[Any], bytes]
    arguments: Optional[Arguments] = None
    """Of a function that takes its arguments by name."""

    def decode(self, infer: Infer, request: Request) -> Any:
        """What `predict` gets, or the rows that are items of `predict_batch`. Raises ClientError."""
        tensors = infer.inputs
        if not self.batched:
            return self._value(self._by_name(tensors))
        sizes = {tensor.shape[0] if tensor.shape else -1 for tensor in tensors.values()}
        if len(sizes) != 1 or -1 in sizes:
            raise ClientError("the first size of every input counts rows, and must be the same for all")
        values = self._by_name(tensors)
        request.rows = rows = sizes.pop()
        return Rows([self._value({name: value[row] for name, value in values.items()}) for row in range(rows)])

    def _by_name(self, tensors: Dict[str, Tensor]) -> Dict[str, Any]:
        return outputs.by_name(tensors, self.arrays, texts=self.arguments is not None)

    def _value(self, by_name: Dict[str, Any]) -> Any:
        if self.arguments is not None:
            return self.arguments.of_tensors(by_name)
        return next(iter(by_name.values())) if self.bare and len(by_name) == 1 else by_name

    def encode(self, output: Any, request: Request) -> List[Tensor]:
        """The tensors of a result. Results of rows are stacked where they are alike; else each becomes a text."""
        if type(output) is not Rows:
            return outputs.tensors_of(output, self.written)
        stacked = outputs.stacked([outputs.tensors_of(result, self.written, lone=()) for result in output])
        if stacked is not None:
            return stacked
        texts = [self.written(result) for result in output]
        return [Tensor(outputs.OUTPUT, "BYTES", (len(texts),), texts)]


def taking(endpoint: Endpoint, bodies: Bodies) -> TensorStages:
    """How the function of an endpoint takes tensors."""
    taker = Taker(
        arrays=util.find_spec("numpy") is not None,
        bare=_wants_array(endpoint.preprocess or endpoint.function, endpoint.batched and endpoint.preprocess is None),
        batched=endpoint.batched,
        written=lambda value: codec.encode(value, "", bodies.limits, bodies.nan).body,
        arguments=None if endpoint.signature is None else endpoint.signature.arguments,
    )
    return TensorStages(taker.decode, taker.encode, INPUTS, OUTPUTS, "panglot_plain")


def _wants_array(entry: Callable[..., Any], takes_items: bool) -> bool:
    """Whether the hint of the only parameter says that it is an array, or a list, and no object with names."""
    try:
        name = next(iter(inspect.signature(entry).parameters))
        hint = get_type_hints(entry).get(name)
    except Exception:
        return False
    if takes_items:
        hint = (getattr(hint, "__args__", None) or (None,))[0]
    origin = getattr(hint, "__origin__", hint)
    return origin in LISTS or getattr(origin, "__name__", "") in ("ndarray", "NDArray")
