"""Echo of a worker of RunPod."""

from __future__ import annotations

from typing import Any

import runpod


def handler(job: dict[str, Any]) -> Any:
    return job["input"]


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
