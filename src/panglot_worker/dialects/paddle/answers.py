"""Results of scripts as JSON with names, as pictures, and in the words of Paddle Serving."""

from __future__ import annotations

import base64
import io
import json
from typing import Any, List, Optional, Sequence, Tuple

from panglot_worker.bodies import accepting, codec
from panglot_worker.dialects.base import Answer, warned

JSON = "application/json"
OK, BAD_INPUT, TIMEOUT, UNKNOWN = 0, 5000, 6000, 10000
"""Error numbers of Paddle Serving."""


def named(result: Any, names: Sequence[str]) -> Any:
    """The result with names for its parts, where the script's source has them and they fit."""
    if isinstance(result, dict):
        return result
    if len(names) == 1:
        return {names[0]: result}
    # The script's source unpacks its result into these names: it is a sequence, or an array of several parts.
    taken_apart = isinstance(result, (tuple, list)) or getattr(result, "ndim", 0) > 0
    if names and taken_apart and len(result) == len(names):
        return dict(zip(names, result))
    return list(result) if isinstance(result, tuple) else result


def encode(value: Any, accept: str, limits: codec.Limits, nan: str, bgr: bool) -> Answer:
    """A named result as JSON, or the picture in it where the client prefers one. Raises EncodeError."""
    form = picture_wanted(accept)
    if form:
        picture = _only_picture(value, bgr)
        if picture is not None:
            return Answer("image/" + form.lower(), written(picture, form))
    content_type, body, warning = codec.encode(_without_pictures(value), JSON, limits, nan)
    return Answer(content_type, body, 200, warned(warning))


# Pictures


def picture_wanted(accept: str) -> str:
    """PNG or JPEG where a client prefers a picture to JSON, else nothing."""
    if "image/" not in accept:
        return ""
    weights = accepting.weights(accept)
    text = max(weights.get(JSON, 0.0), weights.get("application/*", 0.0))
    other = weights.get("image/*", 0.0)
    png, jpeg = weights.get("image/png", other), weights.get("image/jpeg", other)
    if max(png, jpeg) <= 0 or text > max(png, jpeg):
        return ""
    return "JPEG" if jpeg > png else "PNG"


def _only_picture(value: Any, bgr: bool) -> Any:
    """The picture a result is, or the only one among its parts."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    pictures = [picture for picture in (as_picture(part, bgr) for part in parts) if picture is not None]
    return pictures[0] if len(pictures) == 1 else None


def as_picture(value: Any, bgr: bool) -> Any:
    """A Pillow image of an image, or of an array of bytes shaped like one; None for everything else."""
    if _is_image(value):
        return value
    shape = getattr(value, "shape", None)
    if str(getattr(value, "dtype", "")) != "uint8" or shape is None:
        return None
    if len(shape) == 4 and shape[0] == 1:
        value = value[0]
    if len(value.shape) == 3 and value.shape[2] == 1:
        value = value[:, :, 0]
    if len(value.shape) != 2 and not (len(value.shape) == 3 and value.shape[2] in (3, 4)):
        return None
    try:
        from PIL import Image
    except ImportError:
        return None
    if bgr and len(value.shape) == 3:
        value = value[:, :, [2, 1, 0, *range(3, value.shape[2])]]
    return Image.fromarray(value.copy())


def _is_image(value: Any) -> bool:
    return type(value).__module__.startswith("PIL.") and hasattr(value, "save")


def written(image: Any, form: str) -> bytes:
    buffer = io.BytesIO()
    modes = ("L", "RGB", "CMYK") if form == "JPEG" else ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
    (image if image.mode in modes else image.convert("RGB")).save(buffer, form)
    return buffer.getvalue()


def _without_pictures(value: Any) -> Any:
    """A value for JSON: images inside of it are PNG in base64, and so are bytes."""
    if _is_image(value):
        return base64.b64encode(written(value, "PNG")).decode("ascii")
    if isinstance(value, dict):
        return {key: _without_pictures(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [_without_pictures(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode("ascii")
    return value


# Paddle Serving


def serving(value: Any, limits: codec.Limits, nan: str) -> Answer:
    """A named result in the answer of a pipeline: names, and values as text."""
    keys, values = _pairs(value)
    encoded = codec.encode([_without_pictures(value) for value in values], JSON, limits, nan)
    texts = [plain if isinstance(plain, str) else str(plain) for plain in json.loads(encoded.body)]
    answer = serving_answer(OK, "", keys, texts)
    return answer._replace(headers=warned(encoded.warning))


def _pairs(value: Any) -> Tuple[List[str], List[Any]]:
    if isinstance(value, dict):
        return [str(key) for key in value], list(value.values())
    if isinstance(value, list):
        return ["output_%d" % at for at in range(len(value))], value
    return ["result"], [value]


def serving_answer(
    number: int, message: str, keys: Optional[List[str]] = None, values: Optional[List[str]] = None
) -> Answer:
    answer = {"err_no": number, "err_msg": message, "key": keys or [], "value": values or [], "tensors": []}
    return Answer(JSON, json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
