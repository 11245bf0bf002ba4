"""An answer with a status and headers of the script's own."""

import json
from typing import Any, Mapping

try:
    from flask import Response
except ImportError:
    from azureml_inference_server_http.api._http import Response  # type: ignore[assignment]

CONTENT_TYPE = "Content-Type"


class AMLResponse(Response):
    """As on the platform: `json_str` writes the message as JSON, None is `{}`, commas separate repeated headers."""

    def __init__(
        self,
        message: Any,
        status_code: int,
        response_headers: Mapping[str, str] = {},
        json_str: bool = False,
        run_function_failed: bool = False,
    ) -> None:
        if message is None or json_str:
            text = json.dumps({} if message is None else message)
            super().__init__(text, status=status_code, mimetype="application/json")
        else:
            super().__init__(message, status=status_code)
            if CONTENT_TYPE in response_headers:
                self.headers.remove(CONTENT_TYPE)
        self.headers["x-ms-run-function-failed"] = run_function_failed  # type: ignore[assignment]
        for header, value in response_headers.items():
            for part in value.split(","):
                self.headers.add_header(header, part.strip())
