"""JSON values as arrays of a model's type: checked for kind and range, so that nothing is changed silently."""

from __future__ import annotations

from typing import Any, List, Optional

from panglot_worker.errors import ClientError
from panglot_worker.runtimes.base import FREE, NUMPY, ModelTensor, shown

KINDS = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text", "O": "values"}


def tensor(spec: ModelTensor, value: Any) -> Any:
    """A JSON value as what the model takes for an input. Raises ClientError."""
    if spec.sequence:
        if not isinstance(value, list):
            raise ClientError("%s is a sequence: send a list of arrays" % spec.name)
        return [nested_array(spec._replace(sequence=False), part) for part in value]
    return fitted(spec, nested_array(spec, value))


def nested_array(spec: ModelTensor, value: Any) -> Any:
    """Nested lists as an array of the input's type. Raises ClientError."""
    import numpy

    if spec.datatype == "BYTES":
        return _texts(spec, value)
    try:
        given = numpy.asarray(value)
    except ValueError:
        raise ClientError("%s is not a whole array: its lists have different lengths" % spec.name) from None
    except OverflowError:
        raise ClientError("%s holds a number beyond 64 bits" % spec.name) from None
    if given.size == 0 and given.dtype.kind == "f":
        # An empty list has no type of its own: numpy makes floats of it.
        given = given.astype(NUMPY[spec.datatype])
    return converted(spec, given)


def converted(spec: ModelTensor, given: Any) -> Any:
    """An array of numbers as one of the input's type. Raises ClientError where a number would not be the same."""
    import numpy

    wanted = numpy.dtype(NUMPY[spec.datatype])
    if given.dtype == wanted:
        return given
    kind = given.dtype.kind
    allowed = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[wanted.kind]
    if kind not in allowed:
        what = "null, or values that are no numbers" if kind == "O" else KINDS.get(kind, "something else")
        raise ClientError("%s takes %s (%s), not %s" % (spec.name, KINDS[wanted.kind], spec.datatype, what))
    if wanted.kind in "iu" and given.size:
        limits = numpy.iinfo(wanted)
        if int(given.min()) < limits.min or int(given.max()) > limits.max:
            raise ClientError("%s holds a number beyond %s" % (spec.name, spec.datatype))
    with numpy.errstate(over="ignore"):
        result = given.astype(wanted)
    if wanted.kind == "f" and kind == "f" and not numpy.array_equal(numpy.isinf(result), numpy.isinf(given)):
        raise ClientError("%s holds a number beyond %s" % (spec.name, spec.datatype))
    return result


def _texts(spec: ModelTensor, value: Any) -> Any:
    import numpy

    given = numpy.array(value, dtype=object)
    if not all(isinstance(text, str) for text in given.ravel()):
        raise ClientError("%s takes text, in lists of one length" % spec.name)
    return given


def fitted(spec: ModelTensor, given: Any) -> Any:
    """The array in the input's shape; a single row gets the dimension of rows that it lacks. Raises ClientError."""
    wanted: Optional[List[int]] = spec.shape
    if wanted is None:
        return given
    if given.shape == (0,) and wanted[:1] == [FREE]:
        # An empty list: no rows, of any shape.
        given = given.reshape(0, *(size if size != FREE else 0 for size in wanted[1:]))
    elif given.ndim == len(wanted) - 1 and wanted[0] in (FREE, 1):
        given = given[None]
    same = given.ndim == len(wanted) and all(size in (FREE, has) for size, has in zip(wanted, given.shape))
    if not same:
        raise ClientError("%s has the shape %s, and the model takes %s" % (spec.name, list(given.shape), shown(wanted)))
    return given
