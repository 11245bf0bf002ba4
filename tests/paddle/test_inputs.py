"""A model with several inputs: exported, loaded with a handle for each, and served."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.modelarts import grey
from support.paddle import python
from support.server import serving

EXPORT = """
import sys
import paddle
from paddle.static import InputSpec


class Blend(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(2.0))

    def forward(self, left, right):
        return (self.weight * left + right).mean(axis=[1, 2, 3])


spec = [InputSpec(shape=[None, 3, None, None], dtype="float32", name=name) for name in ("left", "right")]
paddle.jit.save(paddle.jit.to_static(Blend(), input_spec=spec), sys.argv[1] + "/inference")
"""
INFER = """
import argparse
import os
import numpy as np
from paddle import inference
from PIL import Image


class InferenceEngine(object):
    def __init__(self, args):
        files = [os.path.join(args.model_dir, "inference." + end) for end in ("pdmodel", "pdiparams")]
        self.predictor = inference.create_predictor(inference.Config(*files))

    def preprocess(self, path):
        picture = np.asarray(Image.open(path).convert("RGB"), "float32")
        return picture.transpose(2, 0, 1)[None]

    def run(self, left, right):
        for name, array in (("left", left), ("right", right)):
            self.predictor.get_input_handle(name).copy_from_cpu(array)
        self.predictor.run()
        return self.predictor.get_output_handle(self.predictor.get_output_names()[0]).copy_to_cpu()

    def postprocess(self, x):
        return float(x[0])


def main(args):
    engine = InferenceEngine(args)
    left, right = engine.preprocess(args.left_path), engine.preprocess(args.right_path)
    mean = engine.postprocess(engine.run(left, right))
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-dir")
    parser.add_argument("--left-path")
    parser.add_argument("--right-path")
    mean = main(parser.parse_args())
"""


@pytest.mark.document("paddle.06")
def test_two_inputs(tmp_path: Path) -> None:
    (tmp_path / "inference").mkdir()
    (tmp_path / "export_model.py").write_text(EXPORT)
    python("export_model.py", "inference", cwd=tmp_path)
    (tmp_path / "infer.py").write_text(INFER)
    with serving(tmp_path) as server:
        for left, right in ((10, 1), (1, 10)):
            answer = server.predict(files={"left_path": ("l.png", grey(left)), "right_path": ("r.png", grey(right))})
            assert answer.json() == {"mean": 2.0 * left + right}, server.log
    # What the command line gives stands in for what a request leaves out.
    (tmp_path / "given.png").write_bytes(grey(5))
    with serving(tmp_path, "--", "--right-path", str(tmp_path / "given.png")) as server:
        assert server.predict(files={"left_path": ("l.png", grey(10))}).json() == {"mean": 25.0}
        missing = server.predict(content=b"")
        assert (missing.status_code, "empty" in missing.text) == (400, True)
