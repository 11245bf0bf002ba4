"""The end of an object of a script's: its `__del__` runs once, before the process ends by `os._exit`."""

from __future__ import annotations

import sys
from typing import Any

HELD_HERE = 2
"""References that `finalise` itself has: its own name, and the argument of `getrefcount`."""


def finalise(owner: Any, attribute: str) -> None:
    """Delete the object of an attribute, so that its `__del__` runs here and now.

    It is called by name where something else holds the object too, such as a thread of the script's: that reference
    would keep it until the process is gone, and nothing runs then. Raises what `__del__` raises in that case; in the
    other, Python shows it and goes on.
    """
    made = getattr(owner, attribute)
    setattr(owner, attribute, None)
    # With no other reference, leaving this function runs `__del__`; calling it here would run it twice.
    if made is not None and hasattr(made, "__del__") and sys.getrefcount(made) > HELD_HERE:
        made.__del__()
