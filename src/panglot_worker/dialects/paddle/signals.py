"""Paddle replaces the signal handlers of the process with its own; these functions restore them."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
from typing import Iterator

OURS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def preserved() -> Iterator[None]:
    """After a block that may import Paddle, signals do what they did before: crashes and hangs show Python's stack."""
    before = {number: signal.getsignal(number) for number in OURS}
    yield
    disable = getattr(sys.modules.get("paddle"), "disable_signal_handler", None)
    if disable is None:
        return
    # Paddle's handlers go first, and ours are put back after that, whatever it has left in their place.
    disable()
    for number, handler in before.items():
        if handler is not None:
            signal.signal(number, handler)
    if faulthandler.is_enabled():
        # Enabling it while it counts as enabled would not install its handlers again.
        faulthandler.disable()
        faulthandler.enable(file=sys.__stderr__ or 2)
