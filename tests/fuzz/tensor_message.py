"""Requests with tensors over gRPC: whole tensors, the model that the front sees too, or one refusal."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator
from unittest.mock import patch

from fuzz.tensor_request import check_answer, check_refusal, check_tensors
from panglot.web.grpc import encoding as grpc_encoding
from panglot.web.grpc import messages as grpc_messages
from panglot.web.grpc import reflection
from panglot.web.grpc.statuses import RpcError
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import messages, protobuf

HEAD = wire.Head(form=b"grpc", model=b"m", version=b"1")
TENSOR = protobuf.text(1, "x") + protobuf.text(2, "FP32") + protobuf.packed(3, (2,))
WORDS = [
    protobuf.text(1, "model"), protobuf.text(2, "1"), protobuf.text(3, "id"), protobuf.message(5, TENSOR),
    protobuf.message(7, bytes(8)), protobuf.message(6, protobuf.text(1, "x")),
    protobuf.message(5, TENSOR + protobuf.message(5, protobuf.message(6, bytes(8)))),
    protobuf.message(4, protobuf.text(1, "key") + protobuf.message(2, b"\x08\x01")),
    *(bytes((number << 3 | kind,)) for number in range(1, 8) for kind in (0, 1, 2, 3, 5)), b"\xff" * 10, b"\x80\x01",
    b"FP16", b"BYTES", b"INT8", b"\0", b"\x01", b"\x22\0" * 30, b"\x48\0" * 30, protobuf.text(1, "other"),
    protobuf.message(9, bytes(400)), gzip.compress(protobuf.text(1, "model")), zlib.compress(protobuf.text(1, "model")),
]  # fmt: skip
NAMES, MOST_FIELDS, MOST_OF_INFERENCE = 300, 12, 40
"""As in `grpc_messages`, but small: an input of a few kilobytes is beyond them."""


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    limits = {"MOST_FIELDS": MOST_FIELDS, "MOST_OF_INFERENCE": MOST_OF_INFERENCE, "NAMES": NAMES}
    with patch.multiple(grpc_messages, **limits), patch.object(grpc_encoding, "NAMES", NAMES):
        yield check


def check(data: bytes) -> None:
    check_address(data)
    for read in (grpc_messages.named, lambda body: grpc_messages.flag(2, body), reflection.respond):
        with contextlib.suppress(ValueError):
            read(data)
    try:
        infer = messages.read(HEAD, data)
    except ClientError as error:
        check_refusal(error)
    else:
        check_tensors(infer)
        check_answer(infer)


def check_address(data: bytes) -> None:
    """The model is read in the first bytes, whatever follows them; what has come first tells the same as all of it."""
    for encoding in (b"gzip", b"deflate"):
        with contextlib.suppress(RpcError):
            assert len(grpc_encoding.beginning(encoding, data)) <= NAMES
    cut = grpc_messages.addressed(data, is_cut=True)
    grpc_messages.leading_name(data)
    try:
        told = grpc_messages.addressed(data)
    except ValueError:
        return
    assert told[:3] == cut[:3]
    assert told.is_all or len(data) > MOST_OF_INFERENCE
    longer = grpc_messages.addressed(data + bytes(NAMES), is_cut=True)
    if len(data) >= NAMES:
        assert longer[:3] == told[:3]
