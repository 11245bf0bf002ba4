"""Progress bars on standard error, as tqdm draws them: they tell how far the call of any script is."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

SIGN = "%|"
BAR = re.compile(r"(?:(?P<about>[^\r\n|]*):)? *(?P<percent>\d{1,3})%\|[^|\r\n]*\| *(?P<count>\S+/\S+)?")


class DrawnBar(NamedTuple):
    """The fraction and the text that a progress bar shows."""

    fraction: float
    text: str


def last_bar(text: str) -> Optional[DrawnBar]:
    """The last progress bar in a piece of output; None where there is none."""
    at = text.rfind(SIGN)
    if at < 0:
        return None
    # A bar is drawn over the one before it, on the same line.
    match = BAR.match(text, max(text.rfind("\r", 0, at), text.rfind("\n", 0, at)) + 1)
    if match is None:
        return None
    about, count = (match.group("about") or "").strip(), match.group("count") or ""
    return DrawnBar(_fraction(int(match.group("percent")), count), " ".join(filter(None, (about, count))))


def _fraction(percent: int, count: str) -> float:
    """The part of 1: by the numbers where they are plain ones, else by the percentage, which is rounded."""
    done, _, total = count.partition("/")
    if done.isdecimal() and total.isdecimal() and int(total):
        return min(1.0, int(done) / int(total))
    return min(1.0, percent / 100)
