"""What gRPC calls the faults of HTTP."""

from __future__ import annotations

from typing import NamedTuple

from panglot.engine.call import Fault

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 2, 3, 4, 5
ALREADY_EXISTS = 6
PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 7, 8, 12, 13, 14, 16

BY_STATUS = {
    401: UNAUTHENTICATED, 403: PERMISSION_DENIED, 404: NOT_FOUND, 408: DEADLINE_EXCEEDED, 413: RESOURCE_EXHAUSTED,
    429: RESOURCE_EXHAUSTED, 499: CANCELLED, 501: UNIMPLEMENTED, 503: UNAVAILABLE, 504: DEADLINE_EXCEEDED,
}  # fmt: skip
BY_CODE = {"unknown": UNKNOWN, "already_exists": ALREADY_EXISTS, "cancelled": CANCELLED}
"""What gRPC has a status for, and HTTP has none."""


class RpcError(Exception):
    """How a call is refused: a status of gRPC, and a sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Refusal(NamedTuple):
    """A way to refuse calls that is written once.

    It is no exception: one exception that is raised again and again would keep the frames of every call it ended.
    """

    code: int
    message: str

    def error(self) -> RpcError:
        return RpcError(self.code, self.message)


def status_of(status: int) -> int:
    """The status of gRPC for one of HTTP."""
    return BY_STATUS.get(status, INVALID_ARGUMENT if 400 <= status < 500 else INTERNAL)


def status_and_sentence(fault: Fault) -> tuple[int, str]:
    """The status and sentence for a fault, where its service does not write its own."""
    return BY_CODE.get(fault.code) or status_of(fault.status), fault.message


def refused(fault: Fault) -> RpcError:
    return RpcError(status_of(fault.status), fault.message)
