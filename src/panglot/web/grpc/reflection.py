"""Answers to clients that ask what a server speaks: `grpc.reflection`, both of its versions."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.web.grpc.descriptors import OURS, ProtoFile
from panglot.web.grpc.messages import number, small_fields
from panglot.web.grpc.statuses import NOT_FOUND
from panglot_worker.tensors.protobuf import LENGTH, message, text

METHODS = tuple(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha"))
ITSELF = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
BY_FILE, BY_SYMBOL, LIST = 3, 4, 7


def respond(body: bytes, files: Sequence[ProtoFile] = OURS) -> bytes:
    """The ServerReflectionResponse to one ServerReflectionRequest. Raises ValueError for what is none."""
    wanted, word = 0, ""
    for field, kind, content in small_fields(body):
        if field >= BY_FILE and kind == LENGTH:
            wanted, word = field, str(content, "utf-8", "replace")
    return message(2, body) + _answer(wanted, word, files)


def _answer(wanted: int, word: str, files: Sequence[ProtoFile]) -> bytes:
    if wanted == LIST:
        names = [f"{file.package}.{service}" for file in files for service in file.services]
        return message(6, b"".join(message(1, text(1, service)) for service in (*names, *ITSELF)))
    described = None
    if wanted == BY_SYMBOL:
        described = next((file for file in files if word in file.symbols), None)
    elif wanted == BY_FILE:
        described = next((file for file in files if word == file.name), None)
    if described is None:
        return message(7, number(1, NOT_FOUND) + text(2, f"there is no {word[:200]} here"))
    return message(4, message(1, described.descriptor()))
