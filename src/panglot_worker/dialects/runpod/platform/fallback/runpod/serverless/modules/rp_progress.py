"""How a script tells how far a job is."""

from __future__ import annotations

from typing import Any, Dict


def progress_update(job: Dict[str, Any], progress: Any) -> None:
    """Show clients a value as the output of a job that is in progress. The dialect puts its own function here."""
