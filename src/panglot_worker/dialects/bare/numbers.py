"""JSON values as arrays of a model's type: checked for kind and range, so that nothing is changed silently."""

from __future__ import annotations

from typing import Any, List, Optional

from panglot_worker.errors import ClientError
from panglot_worker.runtimes.base import FREE, NUMPY, ModelTensor, shown

KINDS = {"b": "true or false", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text", "O": "values"}


def tensor(one: ModelTensor, value: Any) -> Any:
    """A JSON value as what the model takes for an input. Raises ClientError."""
    if one.sequence:
        if not isinstance(value, list):
            raise ClientError("%s is a sequence: send a list of arrays" % one.name)
        return [array(one._replace(sequence=False), part) for part in value]
    return fitted(one, array(one, value))


def array(one: ModelTensor, value: Any) -> Any:
    """Nested lists as an array of the input's type. Raises ClientError."""
    import numpy

    if one.datatype == "BYTES":
        return _texts(one, value)
    try:
        found = numpy.asarray(value)
    except ValueError:
        raise ClientError("%s is not a whole array: its lists have different lengths" % one.name) from None
    except OverflowError:
        raise ClientError("%s holds a number beyond 64 bits" % one.name) from None
    if found.size == 0 and found.dtype.kind == "f":
        # An empty list says nothing about what is not in it.
        found = found.astype(NUMPY[one.datatype])
    return converted(one, found)


def converted(one: ModelTensor, found: Any) -> Any:
    """An array of numbers as one of the input's type. Raises ClientError where a number would not be the same."""
    import numpy

    wanted = numpy.dtype(NUMPY[one.datatype])
    if found.dtype == wanted:
        return found
    kind = found.dtype.kind
    allowed = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[wanted.kind]
    if kind not in allowed:
        what = "null, or values that are no numbers" if kind == "O" else KINDS.get(kind, "something else")
        raise ClientError("%s takes %s (%s), not %s" % (one.name, KINDS[wanted.kind], one.datatype, what))
    if wanted.kind in "iu" and found.size:
        limits = numpy.iinfo(wanted)
        if int(found.min()) < limits.min or int(found.max()) > limits.max:
            raise ClientError("%s holds a number beyond %s" % (one.name, one.datatype))
    with numpy.errstate(over="ignore"):
        result = found.astype(wanted)
    if wanted.kind == "f" and kind == "f" and not numpy.array_equal(numpy.isinf(result), numpy.isinf(found)):
        raise ClientError("%s holds a number beyond %s" % (one.name, one.datatype))
    return result


def _texts(one: ModelTensor, value: Any) -> Any:
    import numpy

    found = numpy.array(value, dtype=object)
    if not all(isinstance(text, str) for text in found.ravel()):
        raise ClientError("%s takes text, in lists of one length" % one.name)
    return found


def fitted(one: ModelTensor, found: Any) -> Any:
    """The array in the input's shape; a single row gets the dimension of rows that it lacks. Raises ClientError."""
    wanted: Optional[List[int]] = one.shape
    if wanted is None:
        return found
    if found.shape == (0,) and wanted[:1] == [FREE]:
        # An empty list: no rows, whatever they would look like.
        found = found.reshape(0, *(size if size != FREE else 0 for size in wanted[1:]))
    elif found.ndim == len(wanted) - 1 and wanted[0] in (FREE, 1):
        found = found[None]
    same = found.ndim == len(wanted) and all(size in (FREE, has) for size, has in zip(wanted, found.shape))
    if not same:
        raise ClientError("%s has the shape %s, and the model takes %s" % (one.name, list(found.shape), shown(wanted)))
    return found
