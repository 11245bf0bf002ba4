"""AutoLog on a GPU: what a script of PyTorch takes there shows in the report."""

from __future__ import annotations

import re
import shutil

import pytest

from support.paddle import python

pytestmark = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="there is no GPU here")

SCRIPT = """
import time
import auto_log
import torch

autolog = auto_log.AutoLogger(model_name="product", batch_size=1, gpu_ids="auto")
autolog.times.start()
held = torch.ones(1 << 30, device="cuda")
one = torch.randn(8192, 8192, device="cuda")
autolog.times.stamp()
until = time.monotonic() + 5
while time.monotonic() < until:
    one = torch.nn.functional.normalize(one @ one)
    torch.cuda.synchronize()
autolog.times.stamp()
autolog.times.end(stamp=True)
autolog.report()
"""


@pytest.mark.document("paddle.24")
def test_memory_and_load_of_the_card() -> None:
    text = python("-c", SCRIPT, shims=True)
    found = re.search(r"gpu_rss\(MB\): ([\d.]+), gpu_util: ([\d.]+)%", text)
    assert found is not None, text
    assert float(found[1]) >= 4096, "4 GiB are held"
    assert float(found[2]) > 50
    assert re.search(r"drivier_version: \d+", text)
