"""The failures of a request, in the platform's codes and sentences."""

from __future__ import annotations

FAILED = 599
BAD_TASK = "parse task request failed"
WRONG_TYPE = "wrong content type"
OUT_OF_BATCH_SIZE = "eval request out of batch_size %d"
NOT_SUPPORTED = "not supported"
UNREADABLE = "the uri cannot be read"
"""For a missing or refused file, a refused address and a failed connection alike: clients cannot probe this machine."""
BAD_DATA = "bad data uri"


class Failed(Exception):
    """The request gets a code and a message. This is an answer, and no error in a program."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class WrongShape(Exception):
    """The result of the script does not follow the convention."""
