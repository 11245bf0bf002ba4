"""Bodies as the older toolkit, sagemaker-containers, reads and writes them: its tables are those of the csv module.

`sagemaker_containers.beta.framework.encoders` of scripts is this, where the original is not installed.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from panglot_worker.dialects.sagemaker import bodies
from panglot_worker.dialects.sagemaker.bodies import CSV, JSON, NPY, UnsupportedFormatError
from panglot_worker.dialects.sagemaker.libraries import library


def decode(obj: Any, content_type: Any) -> Any:
    """The array of a body. Raises UnsupportedFormatError, and ValueError or csv.Error for what is none."""
    if content_type == CSV:
        return csv_to_numpy(obj)
    if content_type in (JSON, NPY):
        return bodies.decode(obj, content_type)
    raise UnsupportedFormatError(content_type)


def csv_to_numpy(string_like: Any, dtype: Any = None) -> Any:
    """The numbers of a table; its texts, where it has others and no type is wanted. Raises ValueError, csv.Error."""
    numpy = library("numpy")

    text = string_like if isinstance(string_like, str) else bytes(string_like).decode("utf-8")
    array = numpy.array(list(csv.reader(io.StringIO(text), strict=True))).squeeze()
    try:
        return array.astype(dtype)
    except ValueError:
        if dtype is not None:
            raise
        return array


def encode(array_like: Any, content_type: Any) -> Any:
    """A result as a body. Raises UnsupportedFormatError, and what json and numpy raise."""
    return array_to_csv(array_like) if content_type == CSV else bodies.encode(array_like, content_type)


def array_to_csv(array_like: Any) -> str:
    """A table; a list is a column of it."""
    array = library("numpy").array(array_like)
    stream = io.StringIO()
    rows = array.reshape(-1, 1) if array.ndim == 1 else array
    csv.writer(stream, lineterminator="\n", strict=True).writerows(rows)
    return stream.getvalue()
