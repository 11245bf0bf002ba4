"""From bodies to what a pipeline takes, and back."""

from typing import Any

from panglot_worker.dialects.sagemaker.bodies import CSV, JSON, NPY, UnsupportedFormatError, array_to_npy
from panglot_worker.dialects.sagemaker.containers.huggingface import PICTURES, READERS, picture_bytes, table, written


def decode(content: Any, content_type: str = JSON) -> Any:
    if content_type not in READERS:
        raise UnsupportedFormatError(content_type)
    return READERS[content_type](content)


def encode(content: Any, accept_type: str = JSON) -> Any:
    writers = {JSON: written, CSV: table, NPY: array_to_npy}
    if accept_type in writers:
        return writers[accept_type](content)
    if accept_type in PICTURES:
        return picture_bytes(content, accept_type)
    raise UnsupportedFormatError(accept_type)


def decode_json(content: Any) -> Any:
    return decode(content, JSON)


def encode_json(content: Any, accept_type: Any = None) -> str:
    return written(content)
