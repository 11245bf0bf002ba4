"""The description of one hint: how to read values for it, its schema, an example."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.codec import File
from panglot_worker.errors import ClientError
from panglot_worker.hints.misfit import Misfit, must_be

Schema = Dict[str, Any]
Reader = Callable[[Any], Any]
"""A function from a value of a request to a value of the hint's type. Raises Misfit."""

NO_EXAMPLE = object()
"""The example of a type that is still being built, because it contains itself."""
DEEPEST = 64
"""Levels of a JSON text inside a form."""


class Kind(NamedTuple):
    """One hint: two ways to read a value for it, and its description for clients."""

    expects: str
    """The end of a sentence such as "must be a number"."""
    convert: Reader
    """Reads a JSON value. A value that already has the hint's type passes, for a script's own example."""
    parse: Reader
    """Reads a field of a form or query: a text, a File, or a list of these where it was sent more than once."""
    schema: Schema
    example: Any = NO_EXAMPLE
    exact: Optional[type] = None
    """The one JSON type whose values pass as they are."""
    is_object: bool = False
    """Whether it takes JSON objects, so that as the only parameter it takes the whole body."""
    is_file: bool = False
    """Whether a body that is neither JSON nor a form can be its value."""
    is_array: bool = False
    """Whether it takes arrays as they are."""
    is_list: bool = False
    """Whether it takes a list of values of one kind."""
    may_fit: Optional[Callable[[Any], bool]] = None
    """A quick look at a JSON value: False when it surely does not fit."""


def from_text(expects: str, read: Callable[[str], Any]) -> Reader:
    """The reader for a form field that must be one text."""

    def parse(value: Any) -> Any:
        if type(value) is str:
            return read(value)
        if isinstance(value, list):
            raise Misfit("is given %d times; it takes one value" % len(value))
        raise must_be("%s, as text" % expects, value)

    return parse


def json_value(value: Any, expects: str) -> Any:
    """The value of a form field that holds JSON: a text, or a file of the type application/json. Raises Misfit."""
    if isinstance(value, File) and value.type.endswith("json"):
        text = value.bytes
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, list):
        raise Misfit("is given %d times; it takes one value" % len(value))
    else:
        raise must_be("%s, as JSON" % expects, value)
    try:
        return jsontext.loads(text, DEEPEST)
    except ClientError as error:
        raise Misfit("must be %s, as JSON: %s" % (expects, error)) from None
