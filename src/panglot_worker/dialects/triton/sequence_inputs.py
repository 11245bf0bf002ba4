"""What a model of sequences is given besides a request's own inputs: controls, and its implicit state."""

from __future__ import annotations

import math
import os
import struct
from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.dialects.triton.sequence_slots import Sequence, SequenceCall, SequenceId
from panglot_worker.errors import ClientError, ScriptError
from panglot_worker.tensors.datatypes import DATATYPES

START, READY, END, CORRELATION = (
    "CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID",
)  # fmt: skip
PAIRS = {"int32_false_true": "<i4", "fp32_false_true": "<f4", "bool_false_true": "?"}
FOLDER = "initial_state"
"""Beside the versions of a model: the files that `data_file` names."""
IDLE, CANDIDATES = 1_000_000, 1
"""Triton's own values where the configuration has none: microseconds, and a number of sequences."""


class Control(NamedTuple):
    """An input that tells where in its sequence a request stands."""

    name: str
    kind: str
    dtype: str
    values: List[Any]
    """The values for false and true; none for the correlation id."""


class State(NamedTuple):
    """A tensor that a model gives with one response, and gets back with the next request."""

    input: str
    output: str
    dtype: str
    shape: List[int]
    file: str
    """The file with the first state; empty: zeros."""


class SequenceConfiguration(NamedTuple):
    """What `sequence_batching` says."""

    controls: List[Control]
    states: List[State]
    direct: bool
    candidates: int
    """How many sequences run at the same time, with the strategy of the oldest."""
    idle: float


def configuration(config: Dict[str, Any], root: str, script: str) -> Optional[SequenceConfiguration]:
    """What a configuration says of sequences; None: nothing. Raises ScriptError."""
    given = config.get("sequence_batching")
    if given is None:
        return None
    oldest = given.get("oldest") or {}
    controls = [_control(entry, script) for entry in given.get("control_input", ())]
    states = [_state(entry, root, script) for entry in given.get("state", ())]
    candidates = max(1, int(oldest.get("max_candidate_sequences", CANDIDATES)))
    idle = (int(given.get("max_sequence_idle_microseconds", 0)) or IDLE) / 1e6
    return SequenceConfiguration(controls, states, "oldest" not in given, candidates, idle)


def _control(entry: Dict[str, Any], script: str) -> Control:
    controls = entry.get("control") or [{}]
    kind, name = str(controls[0].get("kind", "")), str(entry.get("name", ""))
    if kind == CORRELATION:
        return Control(name, kind, _dtype(str(controls[0].get("data_type", "TYPE_UINT64")), script), [])
    for field, dtype in PAIRS.items():
        if len(controls[0].get(field, ())) == 2:
            return Control(name, kind, dtype, list(controls[0][field]))
    raise ScriptError("the control '%s' needs a kind and its values for false and true" % name, script)


def _state(entry: Dict[str, Any], root: str, script: str) -> State:
    initial = (entry.get("initial_state") or [{}])[0]
    dims = [int(size) for size in initial.get("dims") or entry.get("dims", ())]
    file = str(initial.get("data_file", ""))
    path = os.path.realpath(os.path.join(root, FOLDER, file)) if file else ""
    if path and not path.startswith(os.path.realpath(os.path.join(root, FOLDER)) + os.sep):
        raise ScriptError("%s is no file of %s" % (file, FOLDER), script)
    return State(
        str(entry.get("input_name", "")),
        str(entry.get("output_name", "")),
        _dtype(str(entry.get("data_type", "")), script),
        [abs(size) for size in dims],
        path,
    )


def _dtype(kind: str, script: str) -> str:
    name = kind.replace("TYPE_", "", 1)
    if name == "STRING":
        return "O"
    if name not in DATATYPES or not DATATYPES[name].numpy:
        raise ScriptError("%s is no type of a control or a state" % kind, script, fix="use TYPE_INT32, say")
    return DATATYPES[name].numpy


def _zeros_like(array: Any) -> Any:
    """Zeros, or empty texts."""
    import numpy

    return numpy.full(array.shape, b"", object) if array.dtype == object else numpy.zeros_like(array)


def _copy_of(array: Any) -> Any:
    """A copy, since the model may go on to use its array; with texts as bytes, as models get them."""
    import numpy

    if array.dtype.kind not in "OSU":
        return array.copy()
    copy = numpy.empty(array.size, object)
    texts = array.ravel().tolist()
    copy[:] = [text if isinstance(text, bytes) else str(text).encode("utf-8") for text in texts]
    return copy.reshape(array.shape)


def check_states(about: SequenceConfiguration, utils: Any) -> None:
    """Raises ScriptError for a first state that cannot be read: later it would fail the calls of other sequences."""
    inputs = SequenceInputs(about, False, utils)
    for state in about.states:
        try:
            inputs.first_state(state)
        except (OSError, ValueError, struct.error) as error:
            raise ScriptError("the first state '%s' cannot be read: %s" % (state.input, error), state.file) from None


class SequenceInputs:
    """Completes requests. `rows`: whether tensors have a dimension of rows."""

    def __init__(self, about: SequenceConfiguration, rows: bool, utils: Any) -> None:
        self._about = about
        self._lead = [1] if rows else []
        self._utils = utils

    def check(self, name: SequenceId) -> None:
        """Raises ClientError for a correlation id that the model's control cannot hold."""
        import numpy

        for control in self._about.controls:
            if control.kind != CORRELATION or control.dtype == "O":
                continue
            if isinstance(name, str):
                raise ClientError("the correlation id of this model is a number, not a text")
            dtype = numpy.dtype(control.dtype)
            # Here: later it would fail the call, with the requests of other sequences.
            if dtype.kind in "iu" and not numpy.iinfo(dtype).min <= name <= numpy.iinfo(dtype).max:
                raise ClientError("the correlation id of this model is of the type %s, not %d" % (dtype, name))

    def controls(self, name: SequenceId, starts: bool, ends: bool, ready: bool = True) -> List[Any]:
        """The tensors of a request that say where it stands."""
        import numpy

        states = {START: starts, END: ends, READY: ready}
        made = []
        for control in self._about.controls:
            value = control.values[states.get(control.kind, False)] if control.values else name
            if control.dtype == "O":
                value = str(value).encode("utf-8")
            made.append(self._utils.Tensor(control.name, numpy.full([*self._lead, 1], value, control.dtype)))
        return made

    def complete(self, call: SequenceCall) -> None:
        """Add controls and state to a request."""
        request = call.made.request
        request._inputs += self.controls(call.sequence.name, call.starts, call.ends)
        for state in self._about.states:
            if call.starts:
                call.sequence.states[state.input] = self.first_state(state)
            request._inputs.append(self._utils.Tensor(state.input, call.sequence.states[state.input]))

    def first_states(self) -> List[Any]:
        """The state of a sequence that has just begun."""
        return [self._utils.Tensor(state.input, self.first_state(state)) for state in self._about.states]

    def first_state(self, state: State) -> Any:
        """What a state begins with: the content of its file, or zeros."""
        import numpy

        shape = [*self._lead, *state.shape]
        if state.file:
            with open(state.file, "rb") as file:
                content = file.read()
            if state.dtype == "O":
                return self._utils.deserialize_bytes_tensor(content).reshape(shape)
            expected = numpy.dtype(state.dtype).itemsize * math.prod(shape)
            if len(content) != expected:
                raise ValueError("it has %d bytes, and must have %d" % (len(content), expected))
            # A copy, since an array over bytes cannot be written to.
            return numpy.frombuffer(content, state.dtype).reshape(shape).copy()
        return _zeros_like(numpy.empty(shape, state.dtype))

    def empty(self, like: SequenceCall) -> Any:
        """The request for a slot that has none: like another one, but with zeros, and controls that say not ready."""
        utils, other = self._utils, like.made.request
        own = [tensor for tensor in other.inputs() if tensor.name() not in self._added]
        inputs = [utils.Tensor(tensor.name(), _zeros_like(tensor.as_numpy())) for tensor in own]
        inputs += self.controls(0, False, False, ready=False)
        inputs += self.first_states()
        names = other.requested_output_names()
        made = utils.InferenceRequest(inputs=inputs, requested_output_names=names, model_name=other.model_name())
        made._open = other._open
        return made

    @property
    def _added(self) -> List[str]:
        return [control.name for control in self._about.controls] + [state.input for state in self._about.states]

    def take_states(self, sequence: Sequence, response: Any, shown: List[str]) -> None:
        """Store the state in a response, and take out the outputs that the configuration does not list."""
        for state in self._about.states:
            output = self._utils.get_output_tensor_by_name(response, state.output)
            if output is not None:
                sequence.states[state.input] = _copy_of(output.as_numpy())
                if state.output not in shown:
                    response._outputs.remove(output)
