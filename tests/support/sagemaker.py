"""The original of sagemaker packages: the Transformer of sagemaker-inference, in a process of its own environment."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import originals
from support.originals import Answer, Case
from support.server import PACKAGES

PLATFORM = "sagemaker"
VERSIONS = ("sagemaker-inference==1.10.1", "multi-model-server==1.1.11", "numpy<3", "scipy<2", "setuptools<81")
DRIVER = """
import base64, json, sys
sys.path.insert(0, sys.argv[1] + "/code")
from mms.context import Context, RequestProcessor
from mms.metrics.metrics_store import MetricsStore
from sagemaker_inference.transformer import Transformer
transformer = Transformer()
context = Context("model", sys.argv[1], {}, 1, None, "1.1.11")
answers = []
for case in json.load(sys.stdin):
    context.request_ids = {0: "id"}
    context.request_processor = [RequestProcessor(case["headers"])]
    context.metrics = MetricsStore({0: "id"}, "model")
    body = transformer.transform([{"body": bytearray(base64.b64decode(case["body"]))}], context)[0]
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, (bytes, bytearray)):
        # As the model server does with what is neither.
        body = json.dumps(body, indent=2).encode()
    status = context.get_response_status(0)[0]
    kind = context.get_response_content_type(0)
    answers.append({"status": status, "type": kind, "body": base64.b64encode(bytes(body)).decode()})
sys.stdout.write("\\nANSWERS" + json.dumps(answers))
"""


def python() -> str:
    """An interpreter with the inference toolkit and the context of its model server."""
    return originals.interpreter("sagemaker-inference-1.10.1", *VERSIONS)


def theirs(package: str, cases: Sequence[Case], **env: str) -> list[Answer]:
    """What the toolkit answers to cases, which one Transformer gets in their order."""
    given = [{"headers": dict(case.headers), "body": base64.b64encode(_bytes(case)).decode()} for case in cases]
    folder: Path = PACKAGES / package
    done = subprocess.run(
        [python(), "-c", DRIVER, str(folder)],
        input=json.dumps(given),
        env={**os.environ, "SAGEMAKER_PROGRAM": "inference.py", "SM_MODEL_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [_answer(answer) for answer in json.loads(done.stdout.rpartition("ANSWERS")[2])]


def _bytes(case: Case) -> bytes:
    return case.content.encode() if isinstance(case.content, str) else case.content or b""


def _answer(given: dict[str, Any]) -> Answer:
    text = base64.b64decode(given["body"])
    if given["status"] >= 400:
        # Behind the message is the traceback, which clients of Panglot do not get.
        text = text.partition(b"\nTraceback")[0]
    return Answer(given["status"], {"content-type": (given["type"],) if given["type"] else ()}, text)
