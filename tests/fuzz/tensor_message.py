"""Requests with tensors over gRPC: whole tensors, the model that the front sees too, or one refusal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fuzz.tensor_request import check_answer, check_refusal, check_tensors
from panglot.web import grpc_messages, grpc_reflection
from panglot_worker import wire
from panglot_worker.errors import ClientError
from panglot_worker.v2 import messages, protobuf

HEAD = wire.Head(form=b"grpc", model=b"m", version=b"1")
TENSOR = protobuf.text(1, "x") + protobuf.text(2, "FP32") + protobuf.packed(3, (2,))
WORDS = [
    protobuf.text(1, "model"), protobuf.text(2, "1"), protobuf.text(3, "id"), protobuf.message(5, TENSOR),
    protobuf.message(7, bytes(8)), protobuf.message(6, protobuf.text(1, "x")),
    protobuf.message(5, TENSOR + protobuf.message(5, protobuf.message(6, bytes(8)))),
    protobuf.message(4, protobuf.text(1, "key") + protobuf.message(2, b"\x08\x01")),
    *(bytes((number << 3 | kind,)) for number in range(1, 8) for kind in (0, 1, 2, 3, 5)), b"\xff" * 10, b"\x80\x01",
    b"FP16", b"BYTES", b"INT8", b"\0", b"\x01",
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(data: bytes) -> None:
    for read in (grpc_messages.named, lambda body: grpc_messages.flag(2, body), grpc_reflection.respond):
        with contextlib.suppress(ValueError):
            read(data)
    try:
        infer = messages.read(HEAD, data)
    except ClientError as error:
        check_refusal(error)
    else:
        check_tensors(infer)
        check_answer(infer)
