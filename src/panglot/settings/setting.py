"""How a setting is declared: the columns of the table of settings, and the groups its help stands under."""

from __future__ import annotations

from dataclasses import field
from typing import Any

HTTP = "HTTP limits"
INPUT = "Input and output limits"
VIDEO = "Video"
WORKERS = "Workers"
BATCHES = "Batches and queue"
ACCESS = "Access"
LOGS = "Logs"
RECORDING = "Recording"
RAY = "Ray"
MODELS = "Several models"
JOBS = "Jobs"
SERVER, MODEL = "server", "model"
"""Whether a setting is for the whole server, or for each of its models."""
SERVER_GROUPS = (HTTP, ACCESS, LOGS, RECORDING, MODELS, RAY, JOBS)


def setting(  # noqa: PLR0913  each is one column of the table below
    default: Any,
    help: str,
    kind: str,
    *,
    group: str = "Serving",
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
    metavar: str = "",
    short: str = "",
    scope: str = "",
    former: str = "",
    formerly: str = "",
) -> Any:
    """A field of a settings class: its default, its help and unit, and the values it may have.

    Its scope, the whole server or each model, is that of its group unless it is given. A setting that is no longer
    needed says in `former` what is always so now: its default is taken with a warning, any other value is refused.
    A setting that was renamed has its old name in `formerly`: flag, variable and key of that name work for one release,
    with a warning.
    """
    about = {
        "help": help,
        "kind": kind,
        "group": group,
        "choices": choices,
        "least": least,
        "most": most,
        "metavar": metavar,
        "short": short,
        "scope": scope or (SERVER if group in SERVER_GROUPS else MODEL),
        "former": former,
        "formerly": formerly,
    }
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=about)
    if callable(default):
        # Looked up on the machine when settings are made, not when this file is imported.
        return field(default_factory=default, metadata=about)
    return field(default=default, metadata=about)
