"""How far a call is, reported by the script while it runs: `from panglot import progress`."""

from __future__ import annotations

import time
from typing import Any, Optional

from panglot_worker.dialects.request import Request
from panglot_worker.scripts import current

OFTEN = 0.05
"""Seconds after a report in which no second one is sent: a loop may report every step."""


def progress(fraction: Optional[float] = None, text: Any = "") -> None:
    """Report how far this call is: a part of 1, a text or another value that JSON can hold, or both.

    The last report counts, and of many that follow each other at once only some are sent. Outside of a call, and where
    nobody can watch, it does nothing. Raises ValueError for a fraction that is not from 0 to 1.
    """
    if fraction is not None and not 0 <= fraction <= 1:
        raise ValueError("a fraction is from 0 to 1, not %r" % (fraction,))
    report, now = Request.reporter, time.monotonic()
    if report is None:
        return
    for request in current.current():
        if now - getattr(request, "reported", 0.0) >= OFTEN or fraction == 1:
            request.reported = now
            report(request, fraction, text)
