"""The differences between two answers to one request. Values are compared by the rules of `panglot check`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from panglot.recording.json_paths import JsonPath, escaped, replaced
from panglot.recording.recording import RecordedAnswer
from panglot.recording.redaction import EVENTS, JSON_LINES, decoded
from panglot.tools import arrays
from panglot.tools.check.compare import Tolerance, Verdict, compare
from panglot.tools.replay.embedded import embedded
from panglot.tools.replay.pixels import Pixels

MASKED = "<masked>"
DEFAULT_MASKS = ("created", "created_at", "timestamp", "request_id", "requestId", "trace_id", "traceId")
"""Keys that have a new value in every answer."""
FLEETING = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b(?:chatcmpl|cmpl|req|run|msg|resp)[-_][0-9A-Za-z]{8,}"
)
"""Parts of texts that are new in every answer: UUIDs, dates, ids of chats."""
INDEX = re.compile(r"\[\d+\]")
HALF = 1e-3
"""The relative tolerance of numbers of 16 bits, which have 11 significant bits."""
TENSORS = "inference-header-content-length"
NUMPY = {
    "FP64": "<f8", "FP32": "<f4", "FP16": "<f2", "INT64": "<i8", "INT32": "<i4", "INT16": "<i2", "INT8": "i1",
    "UINT64": "<u8", "UINT32": "<u4", "UINT16": "<u2", "UINT8": "u1", "BOOL": "?",
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """The rules by which values count as different."""

    tolerance: Tolerance = field(default_factory=lambda: Tolerance(types=False))
    masks: tuple[JsonPath, ...] = ()
    mask_fleeting: bool = True
    """Whether dates, UUIDs and the keys of DEFAULT_MASKS are masked."""
    pixel_gap: int = 0
    """The largest difference that a channel of a pixel may have."""

    def all_masks(self, further: Sequence[str]) -> list[JsonPath]:
        defaults = [f"/**/{key}" for key in DEFAULT_MASKS] if self.mask_fleeting else []
        return [*self.masks, *(JsonPath.parse(text) for text in (*defaults, *further) if text.startswith(("/", "[")))]


@dataclass(frozen=True)
class Found:
    """One difference. `place` has `[*]` for any index; `gap` is the largest difference of numbers there."""

    kind: str
    place: str
    detail: str
    gap: float = 0.0


def differences(recorded: RecordedAnswer, replayed: RecordedAnswer, rules: Rules, pixels: Pixels) -> list[Found]:
    """Every difference between the recorded and the replayed answer."""
    if recorded.status != replayed.status:
        return [Found("status", "", f"{recorded.status} against {replayed.status}: {_start(replayed.body)}")]
    if recorded.content_type != replayed.content_type:
        return [Found("type", "", f"{recorded.content_type or 'none'} against {replayed.content_type or 'none'}")]
    # The body was not recorded, for example because it was too long: only its size can be compared.
    if recorded.why and recorded.why != "redacted":
        same = recorded.size == replayed.size
        return [] if same else [Found("size", "", f"{recorded.size} bytes against {replayed.size}")]
    if recorded.body == replayed.body:
        return []
    try:
        sides = decoded(recorded), decoded(replayed)
    except ValueError as error:
        return [Found("bytes", "", f"the bodies differ and cannot be decoded: {error}")]
    if recorded.content_type.startswith("image/"):
        return _pictures("", *sides, rules, pixels)
    masks = rules.all_masks(recorded.withheld)
    try:
        left, right = (_values(message, body, masks) for message, body in zip((recorded, replayed), sides, strict=True))
    except (ValueError, RecursionError):
        return [] if sides[0] == sides[1] else [Found("bytes", "", _first_difference(*sides))]
    if isinstance(left, StreamParts) and isinstance(right, StreamParts) and len(left.values) != len(right.values):
        return [Found("parts", "", f"{len(left.values)} parts of the stream against {len(right.values)}")]
    mine, theirs = (
        dict(_flat(value.values if isinstance(value, StreamParts) else value, "", rules.mask_fleeting))
        for value in (left, right)
    )
    return [*_embedded(mine, theirs, rules, pixels), *_judged(mine, theirs, rules)]


@dataclass(frozen=True)
class StreamParts:
    """The parts of a stream, in order."""

    values: list[Any]


def _values(message: RecordedAnswer, body: bytes, masks: list[JsonPath]) -> Any:
    """The value of a body, by its type. Raises ValueError for a body that has no value."""
    kind = message.content_type
    if kind == EVENTS:
        return StreamParts([_masked(part, masks) for part in _events(body)])
    if kind in JSON_LINES:
        return StreamParts([_masked(json.loads(line), masks) for line in body.splitlines() if line.strip()])
    if message.header(TENSORS):
        return _tensors(body, int(message.header(TENSORS)))
    if kind.startswith("text/"):
        return body.decode()
    return _masked(json.loads(body), masks)


def _masked(value: Any, masks: list[JsonPath]) -> Any:
    return replaced(value, masks, lambda old: MASKED)[0] if masks else value


def _events(body: bytes) -> Iterator[Any]:
    """The data of each event: the value where it is JSON, else the text."""
    for event in body.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line.removeprefix("data:").strip() for line in event.split("\n") if line.startswith("data:")]
        if lines:
            text = "\n".join(lines)
            try:
                yield json.loads(text)
            except ValueError:
                yield text


def _tensors(body: bytes, head_size: int) -> dict[str, Any]:
    """An answer of the Open Inference Protocol with binary tensors. Raises ValueError."""
    head, at = json.loads(body[:head_size]), head_size
    for output in head.get("outputs", []):
        size = output.get("parameters", {}).get("binary_data_size")
        if isinstance(size, int):
            raw, dtype = body[at : at + size], NUMPY.get(output.get("datatype", ""))
            output["data"] = arrays.of_bytes(dtype, output["shape"], raw) if dtype else raw.hex()
            at += size
    named: dict[str, Any] = {str(output.get("name")): output for output in head.pop("outputs", [])}
    return {**head, "outputs": named}


def _flat(value: Any, path: str, fleeting: bool) -> Iterator[tuple[str, Any]]:
    """The leaves of a value, by their places. A list of numbers is one leaf, an array."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _flat(entry, f"{path}/{escaped(str(key))}", fleeting)
    elif isinstance(value, list) and value:
        made = arrays.of_value(value)
        if made is not None and made.dtype.kind != "U":
            yield path + "[*]" * made.ndim, made
            return
        for index, entry in enumerate(value):
            yield from _flat(entry, f"{path}[{index}]", fleeting)
    elif isinstance(value, str) and fleeting:
        yield path, FLEETING.sub(MASKED, value)
    elif isinstance(value, arrays.Array):
        yield path + "[*]" * value.ndim, value
    else:
        yield path, value


def _embedded(left: dict[str, Any], right: dict[str, Any], rules: Rules, pixels: Pixels) -> list[Found]:
    """The differences between pictures in base64 at the same place. These places are removed from both sides."""
    # Removed, or the texts would be compared too: two files of one picture may have other bytes.
    noted = []
    for key in [key for key, value in left.items() if isinstance(value, str) and isinstance(right.get(key), str)]:
        if left[key] != right[key] and (mine := embedded(left[key])) and (theirs := embedded(right[key])):
            noted += _pictures(INDEX.sub("[*]", key) or "/", mine.content, theirs.content, rules, pixels)
            del left[key], right[key]
    return noted


def _judged(left: dict[str, Any], right: dict[str, Any], rules: Rules) -> list[Found]:
    """The verdicts of `check` as findings; numbers of 16 bits have a tolerance of their own."""
    halves = {key for key, value in left.items() if getattr(value, "dtype", None) == "float16"}
    wide = dataclasses.replace(rules.tolerance, rtol=max(HALF, rules.tolerance.rtol))
    verdicts = compare({key: left[key] for key in left if key not in halves},
                       {key: right[key] for key in right if key not in halves}, rules.tolerance)  # fmt: skip
    if halves:
        verdicts += compare({key: left[key] for key in halves}, {key: right[key] for key in halves & set(right)}, wide)
    return [noted for verdict in verdicts if verdict.differs and (noted := _found(verdict))]


def _found(verdict: Verdict) -> Found:
    place = INDEX.sub("[*]", verdict.key) or "/"
    kind = verdict.differs_in[0] if verdict.differs_in else "value"
    if kind == "key":
        kind = "missing key" if "on the right" in verdict.differs else "new key"
    return Found(kind, place, verdict.differs, verdict.gap)


def _pictures(place: str, left: bytes, right: bytes, rules: Rules, pixels: Pixels) -> list[Found]:
    if left == right:
        return []
    mine, theirs = pixels.decoded(left), pixels.decoded(right)
    if mine is None or theirs is None:
        return [Found("bytes", place, f"the images differ ({pixels.problem}): {_first_difference(left, right)}")]
    if mine.shape != theirs.shape:
        return [Found("shape", place, f"images of {mine.shape} against {theirs.shape}")]
    difference = arrays.difference(mine, theirs, rules.pixel_gap, 0.0)
    if not difference.count:
        return []
    row, column = difference.index[:2]
    detail = f"{difference.count} of {mine.size} values of pixels differ, most at row {row}, column {column}"
    return [Found("pixels", place, f"{detail}, by {difference.gap:g}", difference.gap)]


def _first_difference(left: bytes, right: bytes) -> str:
    at = next((at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"{len(left)} bytes against {len(right)}, one the beginning of the other"
    return f"{len(left)} bytes against {len(right)}, different from byte {at} on"


def _start(body: bytes) -> str:
    return body[:120].decode(errors="replace")
