"""Bodies of the XGBoost container as a DMatrix: CSV, libsvm and recordio of protobuf.

`sagemaker_xgboost_container.encoder` is this.
"""

from __future__ import annotations

import csv
import os
import tempfile
from typing import Any

from panglot_worker.dialects.sagemaker.bodies import CSV, UnsupportedFormatError
from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.dialects.sagemaker.recordio import RECORDIO, matrix

LIBSVM = ("text/libsvm", "text/x-libsvm")


def decode(obj: Any, content_type: Any) -> Any:
    """The DMatrix of a body; parameters of the content type are cut off. Raises UnsupportedFormatError, ValueError."""
    kind = str(content_type or "").partition(";")[0].strip().lower()
    if kind == CSV:
        return csv_to_dmatrix(obj)
    if kind in LIBSVM:
        return libsvm_to_dmatrix(obj)
    if kind == RECORDIO:
        return recordio_protobuf_to_dmatrix(obj)
    raise UnsupportedFormatError(content_type)


def _text(string_like: Any) -> str:
    return string_like if isinstance(string_like, str) else bytes(string_like).decode("utf-8")


def csv_to_dmatrix(string_like: Any, dtype: Any = None) -> Any:
    """The rows of a table without a head; the delimiter is guessed from the first of them."""
    numpy = library("numpy")
    xgboost = library("xgboost")

    lines = [line for line in _text(string_like).strip().splitlines() if line.strip()]
    try:
        delimiter = csv.Sniffer().sniff(lines[0][:512], ",;\t |").delimiter
    except (csv.Error, IndexError):
        delimiter = ","
    rows = [[float(cell) if cell.strip() else float("nan") for cell in line.split(delimiter)] for line in lines]
    return xgboost.DMatrix(numpy.array(rows, dtype=dtype or "float32"))


def libsvm_to_dmatrix(string_like: Any) -> Any:
    """The rows of libsvm text, which XGBoost reads from a file."""
    xgboost = library("xgboost")

    with tempfile.NamedTemporaryFile("w", suffix=".libsvm", delete=False) as file:
        file.write(_text(string_like))
    # After the file is closed: XGBoost opens it by its name, and must find all of it.
    try:
        return xgboost.DMatrix(file.name + "?format=libsvm")
    finally:
        os.unlink(file.name)


def recordio_protobuf_to_dmatrix(string_like: Any) -> Any:
    """The rows of records of Amazon's protobuf."""
    return library("xgboost").DMatrix(matrix(string_like))
