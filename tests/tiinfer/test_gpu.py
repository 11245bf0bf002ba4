"""The PyTorch sample of the platform's document, to the letter, on a GPU: decoded there, run there."""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from support.documents import lines
from support.tiinfer import Heard, ours

pytestmark = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="there is no GPU here")

WEIGHTS = """
import io, sys
import numpy, torch
from net import Net
from PIL import Image

torch.manual_seed(3)
net = Net().eval()
torch.save(net.state_dict(), "model/mnist_cnn.pt")
for path in sys.argv[1:]:
    pixels = torch.tensor(numpy.asarray(Image.open(path).convert("L"), "float32"))[None, None] / 255
    print(net((pixels - 0.1307) / 0.3081).argmax().item())
"""
PICTURES = 12


def drawn(number: int) -> bytes:
    """Strokes that differ, as JPEG."""
    picture = Image.new("RGB", (28, 28))
    points = [((number * step * 7) % 28, (number * step * 5 + step) % 28) for step in range(1, 5)]
    ImageDraw.Draw(picture).line(points, fill="white", width=3)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


@pytest.mark.document("tiinfer.12")
def test_the_sample_decodes_and_runs_on_the_gpu(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model_service.py").write_text(lines("tiinfer", 12, 164))
    (tmp_path / "net.py").write_text(lines("tiinfer", 167, 198))
    if find_spec("cv2") is None:
        (tmp_path / "cv2.py").write_text("")  # imported by the sample, and not used where there is a GPU
    pictures = [drawn(number) for number in range(1, PICTURES + 1)]
    for number, picture in enumerate(pictures):
        (tmp_path / f"{number}.jpg").write_bytes(picture)
    names = [f"{number}.jpg" for number in range(PICTURES)]
    done = subprocess.run([sys.executable, "-c", WEIGHTS, *names], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = [int(line) for line in done.stdout.split()]
    with ours(tmp_path) as server:
        server.wait_log("load model to device cuda:0")
        values = [{"images": [base64.b64encode(picture).decode()]} for picture in pictures]
        answers = [server.ask(value) for value in values]
        found = [answer.body["result"]["pred"] for answer in answers]
        assert sum(one == other for one, other in zip(found, expected, strict=True)) >= PICTURES - 1, (found, expected)
        assert server.ask({"images": [base64.b64encode(b"no picture").decode()]}) == Heard(
            200, {"error": "preprocess failed"}
        )
    assert len(set(expected)) > 1, "the net tells the pictures apart"
