"""Flags that contradict each other on one command line, and flags without an effect there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from panglot.errors import StartError
from panglot.settings.all_settings import Settings, table_of
from panglot.settings.counts import WorkerCount
from panglot.settings.names import flag

IN_THIS_PROCESS = "--inline runs the script in the server's own process"
CONFLICTS = {
    ("inline", "workers"): f"{IN_THIS_PROCESS}, which is one worker",
    ("inline", "fronts"): f"{IN_THIS_PROCESS}, which is one front",
    ("inline", "pools"): f"{IN_THIS_PROCESS}, which does all stages",
    ("inline", "reload"): f"{IN_THIS_PROCESS}, which cannot load it again",
    ("inline", "python"): f"{IN_THIS_PROCESS}, which runs on one interpreter",
    ("inline", "install"): f"{IN_THIS_PROCESS}, which has its environment already",
    ("inline", "sleep_after"): f"{IN_THIS_PROCESS}, which never ends while it serves",
    ("inline", "on_leave"): f"{IN_THIS_PROCESS}, which no signal can end",
    ("inline", "worker_memory"): f"{IN_THIS_PROCESS}, which cannot be replaced",
    ("inline", "worker_max_requests"): f"{IN_THIS_PROCESS}, which cannot be replaced",
    ("no_auth", "token_file"): "--no-auth lets everybody in, and --token-file only those with the token",
}
"""Pairs of settings of which one has no effect beside the other, and why."""
SLEEP = ("sleep_after", "memory_budget", "gpu_memory_budget")
NEEDS = {
    **dict.fromkeys(
        (
            "record_redact", "record_every", "record_failures", "record_paths", "record_max_body", "record_memory",
            "record_rotate_size", "record_rotate_age", "record_retain",
        ),
        ("record",),
    ),
    **dict.fromkeys(("worker_resources", "ray_python", "ray_files", "ray_tls", "agent_ports"), ("ray",)),
    **dict.fromkeys(("wake_queue", "wake_timeout"), SLEEP),
    "memory": ("memory_budget",),
    "gpu_memory": ("gpu_memory_budget",),
    "admin_token_file": ("admin",),
}  # fmt: skip
"""Settings that have an effect only beside one of others."""
OF_SEVERAL = ("default", "partial", "load_at_once")
"""Settings that have an effect only where several models are served."""


def refuse_conflicts(flags: Mapping[str, Any]) -> None:
    """Raise StartError for two flags of which one could have no effect.

    Files and variables are not looked at: a flag is there to overrule them.
    """
    for (first, second), why in CONFLICTS.items():
        if flags.get(first) and _means_something(second, flags.get(second)):
            both = f"{flag(first)} and {flag(second)} contradict each other"
            raise StartError(f"{both}: {why}", fix=f"leave out {flag(first)} or {flag(second)}")


def refuse_useless(flags: Mapping[str, Any], resolved: Collection[Settings], are_several: bool) -> None:
    """Raise StartError for a flag that does nothing without a setting that is given nowhere, not in a file either."""
    for name in flags:
        needed = NEEDS.get(name, ())
        if needed and not any(getattr(settings, other) for settings in resolved for other in needed):
            others = " or ".join(flag(other) for other in needed)
            raise StartError(f"{flag(name)} has no effect without {others}", fix=f"add {others}, or leave it out")
        if name in OF_SEVERAL and not are_several:
            raise StartError(f"{flag(name)} is for several models", fix="--models DIR, or leave it out")


def _means_something(name: str, value: Any) -> bool:
    if isinstance(value, WorkerCount):
        return value.most > 1
    return bool(value) and value != table_of(Settings)[name].default
