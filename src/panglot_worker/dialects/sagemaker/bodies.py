"""Bodies by the content types that the containers know: from a body to an array, and from a result to a body.

`sagemaker_inference.decoder` and `encoder` of scripts are these functions, where the originals are not installed.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
import zipfile
from typing import Any, Callable, Dict

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.jsondepth import too_deep
from panglot_worker.dialects.sagemaker.libraries import library

JSON, CSV, NPY, NPZ, ANY = "application/json", "text/csv", "application/x-npy", "application/x-npz", "*/*"
UTF8_TYPES = (JSON, CSV)
"""Types whose bodies reach scripts as text: these very texts, without parameters."""
DEEPEST = 64
MOST_UNPACKED = 1 << 30
UNSUPPORTED = textwrap.dedent(
    """Content type %s is not supported by this framework.

            Please implement input_fn to to deserialize the request data or an output_fn to
            serialize the response. For more information, see the SageMaker Python SDK README."""
)
"""The toolkit's sentence, blanks included."""


class UnsupportedFormatError(Exception):
    """A content type that the defaults do not know."""

    def __init__(self, content_type: Any, **kwargs: Any) -> None:
        self._message = UNSUPPORTED % content_type
        super().__init__(self._message, **kwargs)


# From a body


def decode(obj: Any, content_type: Any) -> Any:
    """The array of a body. Raises UnsupportedFormatError, and ValueError for a body that is none."""
    read = READERS.get(content_type)
    if read is None:
        raise UnsupportedFormatError(content_type)
    return read(obj)


def json_value(text: Any) -> Any:
    """The value of JSON text. Raises ValueError in the words of the json module."""
    try:
        return jsontext.loads(text.encode("utf-8") if isinstance(text, str) else bytes(text), DEEPEST)
    except Exception:
        # The json module, which words the error, has no limit of its own.
        if too_deep(text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text), DEEPEST) >= 0:
            raise ValueError("the JSON is nested deeper than %d levels" % DEEPEST) from None
        return json.loads(text)


def json_to_numpy(string_like: Any, dtype: Any = None) -> Any:
    numpy = library("numpy")

    return numpy.array(json_value(string_like), dtype=dtype)


def csv_to_numpy(string_like: Any, dtype: Any = None) -> Any:
    numpy = library("numpy")

    text = string_like if isinstance(string_like, str) else bytes(string_like).decode("utf-8")
    return numpy.genfromtxt(io.StringIO(text), dtype=dtype, delimiter=",")


def npy_to_numpy(npy_array: Any, dtype: Any = None) -> Any:
    """The array of an .npy file. Never unpickles, and never makes more than the file has. Raises ValueError."""
    numpy = library("numpy")

    stream = io.BytesIO(npy_array)
    version = numpy.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("version %d.%d of the .npy format is not read" % version)
    header = numpy.lib.format.read_array_header_1_0 if version == (1, 0) else numpy.lib.format.read_array_header_2_0
    shape, in_fortran_order, kind = header(stream)
    if kind.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    content = stream.getvalue()[stream.tell() :]
    count = math.prod(shape)
    if len(content) < count * kind.itemsize:
        raise ValueError("the array has fewer elements than its header says")
    array = numpy.frombuffer(content, kind, count).copy()
    return array.reshape(shape[::-1]).transpose() if in_fortran_order else array.reshape(shape)


def npz_to_sparse(npz_bytes: Any) -> Any:
    """The matrix of an .npz file of scipy. Raises ValueError."""
    sparse = library("scipy.sparse")

    stream = io.BytesIO(npz_bytes)
    try:
        with zipfile.ZipFile(stream) as opened:
            # The client chose these sizes, but zipfile unpacks no more than they say.
            size = sum(entry.file_size for entry in opened.infolist())
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    if size > MOST_UNPACKED:
        raise ValueError("the matrix becomes more than %d bytes" % MOST_UNPACKED)
    stream.seek(0)
    return sparse.load_npz(stream)


READERS: Dict[Any, Callable[[Any], Any]] = {
    NPY: npy_to_numpy, CSV: csv_to_numpy, JSON: json_to_numpy, NPZ: npz_to_sparse,
}  # fmt: skip


# To a body


def encode(array_like: Any, content_type: Any) -> Any:
    """A result as a body. Raises UnsupportedFormatError, and what json and numpy raise."""
    write = WRITERS.get(content_type)
    if write is None:
        raise UnsupportedFormatError(content_type)
    return write(array_like)


def array_to_json(array_like: Any) -> str:
    def default(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        return json.JSONEncoder().default(value)

    return json.dumps(array_like, default=default)


def array_to_npy(array_like: Any) -> bytes:
    numpy = library("numpy")

    stream = io.BytesIO()
    numpy.save(stream, array_like)
    return stream.getvalue()


def array_to_csv(array_like: Any) -> str:
    numpy = library("numpy")

    stream = io.StringIO()
    numpy.savetxt(stream, array_like, delimiter=",", fmt="%s")
    return stream.getvalue()


WRITERS: Dict[Any, Callable[[Any], Any]] = {NPY: array_to_npy, CSV: array_to_csv, JSON: array_to_json}


def parse_accept(accept: str) -> Any:
    """The types of an Accept header, in its order."""
    return accept.replace(" ", "").split(",")
