"""Returns what the request asks for."""

import dataclasses


@dataclasses.dataclass
class Box:
    left: int
    label: str


class Teapot(Exception):
    status = 418


def predict(request):
    kind = request["kind"]
    if kind == "numpy":
        import numpy

        return {"array": numpy.arange(3, dtype="float32"), "scalar": numpy.int64(7), "flag": numpy.bool_(True)}
    if kind == "dataclass":
        return Box(1, "猫")
    if kind == "bytes":
        return b"\x00raw"
    if kind == "typed":
        return (b"<svg/>", "image/svg+xml")
    if kind == "picture":
        from PIL import Image

        return Image.new("RGB", (3, 2), "red")
    if kind == "nan":
        return {"value": float("nan"), "fine": 1.0}
    if kind == "object":
        return {"deep": [object()]}
    if kind == "teapot":
        raise Teapot("short and stout")
    if kind == "raise":
        raise RuntimeError("secret detail")
    if kind == "header_injection":
        return (b"x", "text/plain\r\nset-cookie: a=b")
    return None
