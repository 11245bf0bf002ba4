"""Scripts that bring mosec workers of their own."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Type

from mosec import Worker

_appended: List[Dict[str, Any]] = []


def append_worker(
    worker: Type[Worker],
    num: int = 1,
    max_batch_size: int = 1,
    start_method: str = "spawn",
    env: Optional[List[Dict[str, str]]] = None,
) -> None:
    """Add a stage. Requests pass the stages in the order in which they were added.

    `num` processes run it; with `max_batch_size` above 1 its `forward` takes and returns lists; `env` gives each
    process variables of its own.
    """
    _appended.append(
        {"worker": worker, "num": num, "max_batch_size": max_batch_size, "start_method": start_method, "env": env}
    )


def get_mosec_workers() -> List[Dict[str, Any]]:
    """What was added, in order."""
    return _appended
