"""The package of RunPod's SDK, as far as scripts that are served use it. Where the original is installed, it wins."""

from __future__ import annotations

import os
from typing import Any

from runpod import serverless
from runpod.serverless.modules.rp_logger import RunPodLogger

__all__ = ["AsyncioEndpoint", "Endpoint", "RunPodLogger", "api_key", "endpoint_url_base", "serverless"]
__version__ = "1.12.0"

profile = "default"
api_key = os.environ.get("RUNPOD_API_KEY")
endpoint_url_base = os.environ.get("RUNPOD_ENDPOINT_BASE_URL", "https://api.runpod.ai/v2")


class Endpoint:
    """The SDK's client, which is not part of Panglot."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        raise NotImplementedError("runpod.Endpoint calls other endpoints and needs the SDK: pip install runpod")


AsyncioEndpoint = Endpoint
