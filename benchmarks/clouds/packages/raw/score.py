"""A scoring script of Azure ML that takes the request itself, and makes the response."""

from __future__ import annotations

import json
from typing import Any

from azureml_inference_server_http.api.aml_request import AMLRequest, rawhttp
from azureml_inference_server_http.api.aml_response import AMLResponse


def init() -> None:
    """There is no model."""


@rawhttp
def run(request: AMLRequest) -> Any:
    rows = json.loads(request.get_data(False))["data"]
    areas = [row["width"] * row["height"] for row in rows]
    return AMLResponse(json.dumps({"areas": areas}), 200)
