"""The end of an object of the script: its `__del__` runs once, before the process ends by `os._exit`."""

from __future__ import annotations

import sys
from typing import Any

HELD_HERE = 2
"""References that `finalise` itself has: its own name, and the argument of `getrefcount`."""


def finalise(owner: Any, attribute: str) -> None:
    """Delete the object of an attribute, so that its `__del__` runs here and now.

    Where another reference holds the object, for example in a thread of the script, `__del__` is called by name:
    otherwise it would not run before the process is gone. Only then its exceptions come out of here; else Python shows
    them and goes on.
    """
    made = getattr(owner, attribute)
    setattr(owner, attribute, None)
    # With no other reference, leaving this function runs `__del__`; calling it here would run it twice.
    if made is not None and hasattr(made, "__del__") and sys.getrefcount(made) > HELD_HERE:
        made.__del__()
