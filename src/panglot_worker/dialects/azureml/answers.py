"""From what `run()` returns to the platform's answer."""

from __future__ import annotations

import json
import sys
from typing import Any, Iterator, List, NamedTuple, Tuple

from panglot_worker.bodies.codec import ALWAYS_JSON
from panglot_worker.dialects.base import Answer

JSON = "application/json"
FAILED, SUCCEEDED = "x-ms-run-function-failed: True", "x-ms-run-function-failed: False"
INTERNAL = "An unexpected internal error occurred. Check the logs for more info."
SCRIPT_FAILED = "An unexpected error occurred in scoring script. Check the logs for more info."
OURS = frozenset((
    "connection", "content-length", "content-type", "date", "keep-alive", "proxy-connection", "server-timing", "te",
    "trailer", "transfer-encoding", "upgrade", "x-request-id", "x-ms-request-id", "x-ms-client-request-id",
    "x-ms-run-function-failed",
))  # fmt: skip
"""Headers of a script's response that are not sent as they are: the server, or the platform, has its own."""
BODILESS = (204, 304)
TOOK = "x-ms-run-fn-exec-ms: "
SHORT = 2.0
SHORT_TIMES = tuple(TOOK + "%.3f" % (microseconds / 1000) for microseconds in range(2001))
"""The lines of short times by their microseconds: to write a float takes several times as long as to look it up."""


class Ran(NamedTuple):
    """The result of a call of `run()`, and whether it is a response."""

    output: Any
    is_response: bool


def took(milliseconds: float) -> str:
    """The header line that tells how long `run()` took."""
    if milliseconds < SHORT:
        return SHORT_TIMES[int(milliseconds * 1000)]
    return TOOK + "%.3f" % milliseconds


def message(status: int, text: str, headers: List[str], failed: bool = False) -> Answer:
    """A failure as the platform answers it."""
    return Answer(JSON, json.dumps({"message": text}).encode(), status, (FAILED if failed else SUCCEEDED, *headers))


# Responses of scripts


def is_response(output: Any) -> bool:
    """Whether a script answers with a response of Flask's, or with one that looks like it."""
    if type(output) in ALWAYS_JSON:
        return False
    # Neither module is imported for this: without it, no response of it can exist.
    flask = sys.modules.get("flask")
    own = sys.modules.get("azureml_inference_server_http.api._http")
    kinds = tuple(module.Response for module in (flask, own) if module is not None)
    return isinstance(output, kinds)


def head_of(response: Any, headers: List[str]) -> Tuple[int, str, List[str]]:
    """Status, content type and header lines of a response."""
    status = int(response.status_code)
    pairs = list(response.headers)
    said = [value for name, value in pairs if name.lower() == "x-ms-run-function-failed"]
    failed = str(said[0]) if said else ""
    lines = ["x-ms-run-function-failed: " + (failed if status < 500 else "True")] if said or status >= 500 else []
    lines += ["%s: %s" % (name, value) for name, value in pairs if name.lower() not in OURS]
    return status, response.headers.get("Content-Type") or "", lines + headers


def body_of(response: Any) -> bytes:
    """The whole body of a response, whose status may not allow one."""
    if response.status_code in BODILESS:
        return b""
    return b"".join(response.iter_encoded())


def parts_of(response: Any) -> Iterator[bytes]:
    """The body of a response, part by part, as its generator gives them."""
    try:
        for part in response.iter_encoded():
            if part:
                yield part
    finally:
        close = getattr(response, "close", None)
        if close is not None:
            close()
