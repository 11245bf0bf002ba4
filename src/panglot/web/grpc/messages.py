"""Messages of gRPC that the front itself reads and writes. It passes on messages with tensors unread."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from panglot_worker.line import wire
from panglot_worker.tensors.protobuf import LENGTH, message, packed, put, start, text
from panglot_worker.tensors.protobuf import fields as fields_of

DATA_TYPES = {
    "BOOL": 1, "UINT8": 2, "UINT16": 3, "UINT32": 4, "UINT64": 5, "INT8": 6, "INT16": 7, "INT32": 8, "INT64": 9,
    "FP16": 10, "FP32": 11, "FP64": 12, "STRING": 13, "BF16": 14,
}  # fmt: skip
LAST = message(4, text(1, "triton_final_response") + message(2, b"\x08\x01"))
"""The parameter by which Triton's clients know that no more follows."""
ID = 3
"""The field of an inference that holds its client's id for it."""
MOST_FIELDS = 256
"""Fields that a message to the front itself may have."""
NAMES = 65536
"""Bytes of an inference at whose beginning its model is named."""
MOST_OF_INFERENCE = 4096
"""Fields of an inference among which its model is looked for."""
LEADING = 16
"""The same of an inference that has only begun to come."""
COMPUTED = ("compute_input", "compute_infer", "compute_output")
DURATIONS = ("success", "fail", "queue", *COMPUTED, "cache_hit", "cache_miss")


class Named(NamedTuple):
    """The model that a message is about."""

    name: str = ""
    version: str = ""


class Addressed(NamedTuple):
    """What the front reads of an inference: its model, and the id that the client gives it."""

    name: str
    version: str
    request_id: str
    is_all: bool
    """Whether all of the message was looked at."""


def small_fields(body: wire.Buffer) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message that the front itself answers: number, wire type, content. Raises ValueError.

    Such messages have a few fields. One with thousands of tiny fields would keep the loop from all other clients.
    """
    try:
        for count, field in enumerate(fields_of(memoryview(body))):
            if count >= MOST_FIELDS:
                raise ValueError("the message has too many fields")
            yield field
    except IndexError as error:
        raise ValueError("the message cannot be read") from error


def named(body: wire.Buffer) -> Named:
    """Fields 1 and 2 of a message, which in all of them are the model's name and version. Raises ValueError."""
    said = {1: "", 2: ""}
    # A later field of the same number wins, here and below: so protobuf wants it.
    for field, kind, content in small_fields(body):
        if kind == LENGTH and field in said:
            said[field] = str(content, "utf-8")
    return Named(said[1], said[2])


def leading_name(first: wire.Buffer) -> Named | None:
    """The same of an inference whose end is missing, if these fields come first, as they nearly always do."""
    said = {1: "", 2: ""}
    try:
        for field, kind, content in itertools.islice(fields_of(memoryview(first)), LEADING):
            if kind != LENGTH or field not in said:
                break
            said[field] = str(content, "utf-8")
    except (IndexError, ValueError):
        # Most likely a field with tensors, whose end has not come: names before it are whole.
        pass
    return Named(said[1], said[2]) if said[1] else None


def addressed(body: wire.Buffer, is_cut: bool = False) -> Addressed:
    """The model and the id in the first bytes of an inference: however large it is, the rest is not looked at.

    Raises ValueError where these are no message, unless the message is known to be cut off after them.
    """
    view = memoryview(body)
    name = version = request_id = ""
    is_all = len(view) <= NAMES and not is_cut
    left = MOST_OF_INFERENCE
    try:
        for field, kind, content in fields_of(view, NAMES):
            left -= 1
            if left < 0:
                is_all = False
                break
            if kind != LENGTH or field > ID:
                continue
            if field == 1:
                name = str(content, "utf-8")
            elif field == 2:
                version = str(content, "utf-8")
            else:
                request_id = str(content, "utf-8", "replace")
    except (IndexError, ValueError) as error:
        if not is_cut:
            raise ValueError("the message cannot be read") from error
    return Addressed(name, version, request_id, is_all)


def text_fields(body: wire.Buffer, wanted: Collection[int]) -> tuple[dict[int, str], bool]:
    """The texts in these fields of a message, as far as its first bytes have them; and whether all was looked at.

    Raises ValueError where the bytes are no message.
    """
    view = memoryview(body)
    texts: dict[int, str] = {}
    try:
        for count, (field, kind, content) in enumerate(fields_of(view, NAMES)):
            if count >= MOST_OF_INFERENCE:
                return texts, False
            if kind == LENGTH and field in wanted:
                texts[field] = str(content, "utf-8")
    except (IndexError, ValueError) as error:
        raise ValueError("the message cannot be read") from error
    return texts, len(view) <= NAMES


def flag(field: int, body: bytes) -> bool:
    """Whether a field of a message, a bool, is set. Raises ValueError."""
    return any(bool(content) for number, _, content in small_fields(body) if number == field)


def keys(field: int, body: bytes) -> list[str]:
    """The keys of a field that is a map from texts. Raises ValueError."""
    entries = [content for number, kind, content in small_fields(body) if (number, kind) == (field, LENGTH)]
    return [named(bytes(entry)).name for entry in entries]


def number(field: int, value: int) -> bytes:
    """A field with a number. Without bytes for 0, which is what a missing field means."""
    return put(field << 3) + put(value) if value else b""


def server(about: dict[str, Any]) -> bytes:
    extensions = b"".join(text(3, extension) for extension in about["extensions"])
    return text(1, about["name"]) + text(2, about["version"]) + extensions


def metadata(about: dict[str, Any]) -> bytes:
    """A ModelMetadataResponse."""
    parts = [text(1, about["name"]), *(text(2, version) for version in about["versions"]), text(3, about["platform"])]
    for field, tensors in ((4, about["inputs"]), (5, about["outputs"])):
        for tensor in tensors:
            inside = text(1, tensor["name"]) + text(2, tensor["datatype"]) + packed(3, tensor["shape"])
            parts.append(message(field, inside))
    return b"".join(parts)


def config(about: dict[str, Any]) -> bytes:
    """A ModelConfigResponse."""
    parts = [text(1, about["name"]), text(2, about["platform"]), number(4, about["max_batch_size"])]
    for field, sizes, tensors in ((5, 4, about["input"]), (6, 3, about["output"])):
        for tensor in tensors:
            kind = DATA_TYPES[tensor["data_type"].removeprefix("TYPE_")]
            parts.append(message(field, text(1, tensor["name"]) + number(2, kind) + packed(sizes, tensor["dims"])))
    if "dynamic_batching" in about:
        parts.append(message(11, b""))
    decoupled = number(1, int(about["model_transaction_policy"]["decoupled"]))
    parts += [text(17, about["backend"]), message(19, decoupled)]
    return message(1, b"".join(parts))


def statistics(models: list[dict[str, Any]]) -> bytes:
    """A ModelStatisticsResponse."""
    return b"".join(message(1, _statistics(about)) for about in models)


def _statistics(about: dict[str, Any]) -> bytes:
    lasted = about["inference_stats"]
    durations = [message(field, _duration(lasted[name])) for field, name in enumerate(DURATIONS, 1)]
    counts = number(3, about["last_inference"]) + number(4, about["inference_count"])
    return b"".join((
        text(1, about["name"]), text(2, about["version"]), counts, number(5, about["execution_count"]),
        message(6, b"".join(durations)), *(message(7, _runs(runs)) for runs in about["batch_stats"]),
    ))  # fmt: skip


def _runs(about: dict[str, Any]) -> bytes:
    """An InferBatchStatistics."""
    lasted = (message(field, _duration(about[name])) for field, name in enumerate(COMPUTED, 2))
    return number(1, about["batch_size"]) + b"".join(lasted)


def _duration(lasted: dict[str, int]) -> bytes:
    return number(1, lasted["count"]) + number(2, lasted["ns"])


def index(models: list[dict[str, str]]) -> bytes:
    """A RepositoryIndexResponse."""
    fields = ("name", "version", "state", "reason")
    rows = (b"".join(text(field, about[name]) for field, name in enumerate(fields, 1)) for about in models)
    return b"".join(message(1, row) for row in rows)


def streamed(body: Any) -> bytes:
    """A ModelStreamInferResponse with an answer."""
    return start(2, len(body)) + bytes(body)


def stream_failure(sentence: str, known: str) -> bytes:
    """A ModelStreamInferResponse that says what went wrong, with the id of the inference, which ends with it."""
    return text(1, sentence or "failed") + message(2, text(3, known) + LAST)
