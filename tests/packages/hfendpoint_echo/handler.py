"""Answers with what it was asked for, or with what it was given."""

import dataclasses
import datetime
import decimal
import os
import sys
import uuid

import numpy as np
from PIL import Image


@dataclasses.dataclass
class Point:
    x: int
    _hidden: int = 2


class HTTPException(Exception):
    def __init__(self, status_code, detail):
        super().__init__(status_code, detail)
        self.status_code, self.detail = status_code, detail

    def __str__(self):
        return f"{self.status_code}: {self.detail}"


def described(value):
    if isinstance(value, Image.Image):
        return {"type": "PIL", "mode": value.mode, "size": list(value.size)}
    if isinstance(value, bytes):
        return {"type": "bytes", "size": len(value), "head": value[:4].hex()}
    return value


class EndpointHandler:
    """Describes its requests."""

    def __init__(self, path=""):
        self.path = path

    def results(self):
        return {
            "scalars": {"a": np.float32(0.5), "b": np.arange(3), "c": np.float32(0.1), "d": np.float64(0.1)},
            "halves": np.array([0.1], dtype="f2"),
            "wide": np.full((2, 2), 0.1, dtype="f4"),
            "image": Image.new("RGB", (4, 2), (255, 0, 0)),
            "images": [Image.new("L", (1, 1))],
            "bytes": {"x": b"x"},
            "int_keys": {1: 2},
            "nan": [float("nan"), 1.0],
            "tuple": (1, "b", None),
            "decimal": decimal.Decimal(1),
            "set": {1},
            "point": Point(1),
            "date": datetime.date(2020, 1, 2),
            "uuid": uuid.UUID(int=1),
            "none": None,
            "text": "käse",
            "error": {"error": "said by the script itself"},
        }

    def world(self):
        return {
            "path": self.path,
            "cwd": os.getcwd(),
            "module": type(self).__module__,
            "registered": "handler.EndpointHandler" in sys.modules,
            "first": sys.path[0],
            "model_dir": os.environ.get("HF_MODEL_DIR"),
            "task": os.environ.get("HF_TASK"),
        }

    def parts(self, number):
        for count in range(number):
            yield {"part": count}

    def __call__(self, data):
        inputs = data.pop("inputs", data)
        if isinstance(inputs, dict) and "return" in inputs:
            return self.results()[inputs["return"]]
        if isinstance(inputs, dict) and "raise" in inputs:
            if inputs["raise"] == "HTTPException":
                raise HTTPException(400, "detail")
            raise {"ValueError": ValueError, "KeyError": KeyError}[inputs["raise"]]("no")
        if inputs == "world":
            return self.world()
        if inputs == "parts":
            return self.parts(3)
        return {"inputs": described(inputs), **data}
