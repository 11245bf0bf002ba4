"""Tells name, type, size and caption of an uploaded picture."""

from __future__ import annotations

from typing import Any

from panglot import ClientError, File


class Model:
    """Tells name, type, size and caption of an uploaded picture."""

    def predict(self, request: Any) -> dict[str, Any]:
        image = request.get("image") if isinstance(request, dict) else None
        if not isinstance(image, File):
            raise ClientError("send the picture as the form field 'image'")
        return {
            "name": image.name,
            "type": image.type,
            "size": len(image.bytes),
            "caption": request.get("caption"),
        }

    def example(self) -> dict[str, Any]:
        return {"image": File("dot.png", "image/png", b"\x89PNG\r\n\x1a\n"), "caption": "a dot"}
