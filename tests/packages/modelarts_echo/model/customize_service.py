"""Answers with a description of the data it got, or does what the data says."""

import io

from model_service.model_service import SingleNodeService


def told(value):
    if isinstance(value, dict):
        return {"type": type(value).__name__, "items": [[key, told(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return {"type": "list", "items": [told(item) for item in value]}
    if type(value) is io.BytesIO:
        position = value.tell()
        return {"type": "BytesIO", "position": position, "size": len(value.getvalue()), "head": repr(value.read(16))}
    return {"type": type(value).__name__, "value": value}


class Other:
    pass


def result(kind):
    import numpy

    return {
        "numpy": {"label": numpy.int64(7), "scores": numpy.array([[0.5, 0.25]], dtype=numpy.float32)},
        "numpy_key": {numpy.int64(3): 1},
        "nan": {"score": float("nan"), "inner": [float("inf"), 1.0, numpy.float32("nan")]},
        "bytes": b"raw",
        "object": Other(),
        "text": '{"already": "json"}',
        "chinese": {"标签": "猫", "score": 0.5, "list": [1, 2]},
        "surrogate": "\ud800",
        "none": None,
        "generator": (number for number in range(3)),
    }[kind]


class Echo(SingleNodeService):
    def _preprocess(self, data):
        if isinstance(data, dict) and "raise" in data:
            raise {"KeyError": KeyError, "TypeError": TypeError, "ValueError": ValueError, "Own": Own}[data["raise"]](
                "why"
            )
        return data

    def _inference(self, data):
        return data

    def _postprocess(self, data):
        if isinstance(data, dict) and "return" in data:
            return result(data["return"])
        return told(data)


class Own(TypeError):
    status = 404
