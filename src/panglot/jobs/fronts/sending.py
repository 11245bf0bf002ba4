"""The way from one front to another, for commands about jobs."""

from __future__ import annotations

from typing import Any, Protocol


class SendCommand(Protocol):
    """The way to another front."""

    def __call__(self, number: int, command: str, value: Any) -> None:
        """Send a command with its arguments; its result comes with the same number."""
