"""What a script may raise to choose the HTTP status.

Exception
└── MosecError          500
    ├── ClientError     400
    │   └── DecodingError
    ├── ValidationError 422
    └── ServerError     500
        └── EncodingError
"""

from __future__ import annotations

from mosec.protocol import HTTPStatusCode


class MosecError(Exception):
    """The answer is `msg`, a colon, and the exception's own text."""

    code: HTTPStatusCode = HTTPStatusCode.INTERNAL_ERROR
    msg: str = "mosec error"


class ClientError(MosecError):
    """The request is wrong: 400."""

    code = HTTPStatusCode.BAD_REQUEST
    msg = "bad request"


class ServerError(MosecError):
    """The service is at fault: 500."""

    code = HTTPStatusCode.INTERNAL_ERROR
    msg = "internal error"


class DecodingError(ClientError):
    """The body cannot be read: 400."""

    msg = "decoding error"


class ValidationError(MosecError):
    """The body was read, and is not what the script needs: 422."""

    code = HTTPStatusCode.VALIDATION_ERROR
    msg = "request validation error"


class EncodingError(ServerError):
    """The result cannot be sent: 500."""

    msg = "encoding error"


class MosecTimeoutError(BaseException):
    """For `except` clauses alone: Panglot never raises it inside a script."""

    code: HTTPStatusCode = HTTPStatusCode.TIMEOUT_ERROR
    msg: str = "mosec timeout error"
