"""Does what its inputs say: one predictor for all that an input and an output can be."""

import os
import sys
import tempfile
import time
from typing import List, Optional

from cog import BaseModel, BasePredictor, CancelationException, Input, Path, Secret


class Output(BaseModel):
    text: str
    n: Optional[int]
    file: Optional[Path]


class Predictor(BasePredictor):
    def setup(self):
        print("setting up")
        self.calls = 0

    def predict(
        self,
        op: str = Input(description="what to do", default="echo"),
        n: int = Input(default=2, ge=1, le=5),
        image: Path = Input(default=None),
        kind: str = Input(default="a", choices=["a", "b"]),
        scale: float = 1.0,
        flag: bool = False,
        images: List[Path] = Input(default=[]),
        seed: Optional[int] = Input(default=None),
        token: Secret = Input(default=None),
    ) -> Output:
        self.calls += 1
        print("log line")
        print("err line", file=sys.stderr)
        if op == "raise":
            raise ValueError("no")
        if op == "sleep":
            time.sleep(3)
        if op == "clean":
            try:
                print("sleeping")
                time.sleep(60)
            except CancelationException:
                print("cleaning up")
                raise
        if op == "die":
            os._exit(1)
        if op == "image":
            return Output(text="%s %s" % (image.name, image.read_text()), n=len(images))
        if op == "secret":
            return Output(text="%s %s" % (token, token.get_secret_value()))
        if op == "file":
            out = Path(tempfile.mkdtemp()) / "o.txt"
            out.write_text("hi")
            return Output(text="file", file=out)
        if op == "gone":
            return Output(text="file", file=Path("/nowhere/o.txt"))
        if op == "nan":
            return {"value": float("nan")}
        if op == "metric":
            self.record_metric("tokens", 3)
        return Output(text="%s %r %s %r %r %r" % (op, n, kind, scale, flag, seed))
