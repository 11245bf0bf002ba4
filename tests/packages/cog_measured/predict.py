"""A predictor in the form that old and new versions of Cog take."""

import ctypes
import os
import sys
import tempfile
from typing import Any

from cog import BasePredictor, Input, Path


class Predictor(BasePredictor):
    def setup(self):
        print("setting up")

    def predict(
        self,
        op: str = Input(description="what to do", default="echo"),
        n: int = Input(default=2, ge=1, le=5),
        image: Path = Input(default=None),
        kind: str = Input(default="a", choices=["a", "b"]),
    ) -> Any:
        print("log line")
        print("err line", file=sys.stderr)
        if op == "raise":
            raise ValueError("no")
        if op == "native":
            sys.stdout.flush()
            os.system("echo from a shell")
            ctypes.CDLL(None).puts(b"from a library")
        if op == "image":
            return image.read_text()
        if op == "file":
            out = Path(tempfile.mkdtemp()) / "o.txt"
            out.write_text("hi")
            return out
        return {"op": str(op), "n": n, "kind": str(getattr(kind, "value", kind))}
