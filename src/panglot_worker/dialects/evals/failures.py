"""What a request may fail of, as the platform's codes say it."""

from __future__ import annotations

FAILED = 599
BAD_TASK = "parse task request failed"
WRONG_TYPE = "wrong content type"
OUT_OF_BATCH_SIZE = "eval request out of batch_size %d"
NOT_SUPPORTED = "not supported"
UNREADABLE = "the uri cannot be read"
"""Of a missing or refused file, a refused address, a failed connection: nobody learns which."""
BAD_DATA = "bad data uri"


class Failed(Exception):
    """A request answered with a code and a message; nobody's program error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class WrongShape(Exception):
    """What the script returned does not follow the convention."""
