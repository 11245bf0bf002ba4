"""Makes the `data` of a handler from a request (docs/dialects/hfendpoint.md has the table).

A dict of the JSON body; or `{"inputs": ...}` with a picture of Pillow, or with the bytes of a sound.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import Any, Dict
from urllib.parse import parse_qsl

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.magic import media_type
from panglot_worker.bodies.multipart import Body, Limits
from panglot_worker.dialects.base import Request
from panglot_worker.errors import ClientError, message_of

JSON, OCTETS = "application/json", "application/octet-stream"
PICTURES = (
    "image/png", "image/jpeg", "image/jpg", "image/tiff", "image/bmp", "image/gif", "image/webp", "image/x-image",
)  # fmt: skip
SOUNDS = (
    "audio/x-flac", "audio/flac", "audio/mpeg", "audio/x-mpeg-3", "audio/wave", "audio/wav", "audio/x-wav", "audio/ogg",
    "audio/x-audio", "audio/webm", "audio/amr", "audio/amr-wb", "audio/amr-wb+", "audio/m4a", "audio/x-m4a",
)  # fmt: skip
SUPPORTED = ", ".join((JSON, *PICTURES, *SOUNDS))
SOUND_STARTS = ((b"fLaC", "audio/flac"), (b"OggS", "audio/ogg"), (b"ID3", "audio/mpeg"), (b"#!AMR", "audio/amr"))
BASE64_TASKS = ("automatic-speech-recognition", "audio-classification")
"""Tasks whose `inputs` are base64 where the body has `parameters` too."""
WORDS: Dict[str, Any] = {"true": True, "false": False}
LONGEST_SHOWN = 1000


class Reader:
    """Makes the `data` of a request."""

    def __init__(self, limits: Limits, task: str) -> None:
        self.limits = limits
        self.in_base64 = task in BASE64_TASKS

    def read(self, request: Request) -> Any:
        """The argument of the handler. Raises ClientError."""
        head = request.head
        kind = head.content_type
        data = self._json(request.body) if kind == b"application/json" else self._by_type(kind, request.body)
        try:
            if "inputs" not in data and "instances" not in data:
                raise ClientError("Body needs to provide a inputs key, received: %r" % _shown(data))
            if self.in_base64 and "parameters" in data:
                data["inputs"] = base64.b64decode(data["inputs"], validate=True)
            if head.query and "parameters" not in data:
                _add_query(data, head.query.decode("latin-1"))
        except (TypeError, KeyError, ValueError, binascii.Error) as error:
            # A body that is no object, or `inputs` that are no base64: in Python's own words, as on the platform.
            raise ClientError(message_of(error)) from None
        return data

    def _by_type(self, said: bytes, body: Body) -> Any:
        kind = said.decode("latin-1").partition(";")[0].strip().lower()
        if kind in ("", OCTETS):
            # The platform refuses these, which its own client sends for bytes.
            kind = guessed(bytes(body[:64])) or kind
        if kind == JSON:
            return self._json(body)
        if kind in PICTURES:
            return {"inputs": _picture(body)}
        if kind in SOUNDS:
            return {"inputs": bytes(body)}
        shown = said.decode("latin-1", "replace")[:80] or "None"
        raise ClientError('Content type "%s" not supported. Supported content types are: %s' % (shown, SUPPORTED))

    def _json(self, body: Body) -> Any:
        if len(body) > self.limits.json_bytes:
            raise ClientError("the JSON body is larger than max_json, %d bytes" % self.limits.json_bytes, 413)
        try:
            return jsontext.loads(body, self.limits.json_depth)
        except jsontext.LongInteger:
            # As the platform's parser does, these become floats.
            return json.loads(bytes(body), parse_int=_number)


def guessed(content: bytes) -> str:
    """The type of a body that nobody named, by its first bytes; empty where they tell nothing."""
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return "audio/wav"
    for start, kind in SOUND_STARTS:
        if content.startswith(start):
            return kind
    if content[:2] in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"):
        return "audio/mpeg"
    kind = media_type(content)
    return "" if kind == OCTETS else kind


def _number(text: str) -> Any:
    return int(text) if len(text) <= 20 and -(2**63) <= int(text) < 2**64 else float(text)


def _picture(body: Body) -> Any:
    """A picture of three colours. Raises ClientError for what is none, and for one that is too large."""
    try:
        from PIL import Image
    except ImportError:
        raise ClientError("images need Pillow in the environment of the script: pip install pillow") from None
    try:
        return Image.open(io.BytesIO(body)).convert("RGB")
    except Image.UnidentifiedImageError:
        # Pillow's own text names an address in memory.
        raise ClientError("cannot identify image file") from None
    except Exception as error:
        raise ClientError(message_of(error)) from None


def _shown(data: Any) -> bytes:
    """The body as the platform would write it again, cut where it is long."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + b"..."


def _add_query(data: Dict[str, Any], query: str) -> None:
    """Put the query in as the parameters: whole numbers and truth values as such, all else as text."""
    fields = dict(parse_qsl(query, keep_blank_values=True))
    if fields:
        data["parameters"] = {
            name: int(text) if text.isdecimal() else WORDS.get(text, text) for name, text in fields.items()
        }
