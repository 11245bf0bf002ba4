import json
import sys
from pathlib import Path

from megflow import register

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "megflow"
sys.path.insert(0, str(EXAMPLE))

from digits.reader import Reader  # noqa: E402


@register(inputs=["inp"], outputs=["out"])
class One:
    def __init__(self, name, args):
        self.reader = Reader(str(EXAMPLE / "digits" / "digits.onnx"))

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        digit, confidence = self.reader.read([envelope.msg["data"]])[0]
        self.out.send(envelope.repack(json.dumps({"digit": digit, "confidence": confidence})))
