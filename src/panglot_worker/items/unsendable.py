"""The text for the log about a result that cannot be sent."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any, Callable, Optional

from panglot_worker.errors import EncodeError, message_of
from panglot_worker.hints.spelling import file_and_line

FIX = "return dicts, lists, texts and numbers, which JSON has"
WRITER = os.path.join(os.path.dirname(os.path.abspath(json.__file__)), "")


def is_of_json(error: BaseException) -> bool:
    """Whether Python's own writer of JSON raised it. Some dialects use it, with its sentence as part of the answer."""
    return any(
        os.path.abspath(entry.filename).startswith(WRITER) for entry in traceback.extract_tb(error.__traceback__)
    )


def explained(error: BaseException, function: Optional[Callable[..., Any]], folder: str) -> str:
    """One line for the script's author: the function that gave the result, the fault of the result, and the fix.

    Empty where code of the script raised while its result was written: then the traceback says more.
    """
    if _has_raised(error, folder):
        return ""
    file, line = ("", 0) if function is None else file_and_line(function)
    where = "%s:%d: %s: " % (file, line, getattr(function, "__name__", "the script")) if file else ""
    if not isinstance(error, EncodeError):
        return "%sthe result cannot be sent: %s (fix: %s)" % (where, message_of(error), FIX)
    return where + message_of(error) + (" (fix: %s)" % error.fix if error.fix else "")


def _has_raised(error: Optional[BaseException], folder: str) -> bool:
    """Whether a frame of the package is in the traceback of the exception, or of one of its causes."""
    while error is not None:
        for entry in traceback.extract_tb(error.__traceback__):
            if os.path.abspath(entry.filename).startswith(folder + os.sep):
                return True
        error = error.__cause__ or error.__context__
    return False
