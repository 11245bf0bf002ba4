"""Bodies that clients of Hugging Face Inference Endpoints send."""

from __future__ import annotations

import io
import wave

from PIL import Image


def picture(mode: str = "RGB", form: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (4, 2), 128 if mode == "L" else None).save(out, form)
    return out.getvalue()


def sound(seconds: float = 0.5) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(int(16000 * seconds)))
    return out.getvalue()
