"""The inputs of an exported program of Paddle 2, read from its bytes: Paddle's own reader crashes on other content."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple, Union

from panglot_worker.runtimes.message import fields
from panglot_worker.runtimes.message import inner as _message
from panglot_worker.runtimes.message import text as _text

TYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
}
BLOCK = b"\n"
"""How a block begins: field 1, with a length."""

PERSISTENT = 3
"""The field of a variable that says whether it outlives a run."""
PASSAGES = (9, 10, 17)
"""The types of variables that carry inputs and outputs, or are of no certain type."""


class Input(NamedTuple):
    """One input of a model: its exported shape, -1 where it is free, and its type."""

    name: str
    shape: Tuple[int, ...]
    dtype: str


def is_program(content: bytes) -> bool:
    """Whether content may be a program: a whole message, with a block as its first field."""
    try:
        return bytes(content[:1]) == BLOCK and bool(list(fields(memoryview(content))))
    except (ValueError, IndexError):
        return False


def inputs(content: bytes) -> List[Input]:
    """The inputs of a program. Raises ValueError or IndexError for content that is none."""
    blocks = [value for number, value in fields(memoryview(content)) if number == 1]
    block = list(fields(_message(blocks[0])))
    variables = dict(_variable(_message(value)) for number, value in block if number == 3)
    fed: List[str] = []
    for number, value in block:
        if number == 4:
            fed += _fed(_message(value))
    return [variables[name] for name in fed]


def has_parameters(content: bytes) -> bool:
    """Whether a program has variables that outlive a run, besides those for inputs and outputs.

    Raises ValueError or IndexError for content that is no program.
    """
    blocks = [value for number, value in fields(memoryview(content)) if number == 1]
    for block in blocks:
        for number, value in fields(_message(block)):
            about = dict(fields(_message(value))) if number == 3 else {}
            if about.get(PERSISTENT) and dict(fields(_message(about[2]))).get(1) not in PASSAGES:
                return True
    return False


def _variable(message: memoryview) -> Tuple[str, Input]:
    about: Dict[int, Union[int, memoryview]] = dict(fields(message))
    name = _text(about[1])
    tensor = _inner(_message(about[2]), 3, 1)
    dtype, shape = 5, []
    for number, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 2 and isinstance(value, int):
            shape.append(value - (1 << 64) if value >> 63 else value)
    return name, Input(name, tuple(shape), TYPES.get(dtype, "another type"))


def _inner(message: memoryview, *path: int) -> memoryview:
    """The message at the end of a path of field numbers; empty where there is none."""
    for wanted in path:
        values = [value for number, value in fields(message) if number == wanted]
        message = _message(values[-1]) if values else memoryview(b"")
    return message


def _fed(message: memoryview) -> List[str]:
    """The variables that an operation feeds; none for one that does not feed."""
    about = list(fields(message))
    if not any(number == 3 and _text(value) == "feed" for number, value in about):
        return []
    outputs = [_message(value) for number, value in about if number == 2]
    return [_text(value) for output in outputs for number, value in fields(output) if number == 2]
