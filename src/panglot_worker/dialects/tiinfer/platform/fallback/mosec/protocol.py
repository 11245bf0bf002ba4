"""The codes errors carry."""

from __future__ import annotations

from enum import IntFlag


class HTTPStatusCode(IntFlag):
    """How a request ended. These are mosec's own numbers; the HTTP status is in the name."""

    OK = 1
    BAD_REQUEST = 2
    VALIDATION_ERROR = 4
    INTERNAL_ERROR = 8
    TIMEOUT_ERROR = 16
    STREAM_EVENT = 32768
