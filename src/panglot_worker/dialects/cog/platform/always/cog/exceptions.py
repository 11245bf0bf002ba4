"""What a prediction may be ended by."""

from __future__ import annotations


class CancelationException(BaseException):
    """The prediction was cancelled. A script may catch it to clean up, and must raise it again."""
