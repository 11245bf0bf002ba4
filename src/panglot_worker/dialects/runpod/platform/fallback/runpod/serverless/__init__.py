"""What scripts call: `start`, `progress_update` and the registration of checks."""

from __future__ import annotations

from typing import Any, Dict

from runpod.serverless.modules.rp_fitness import register_fitness_check
from runpod.serverless.modules.rp_logger import RunPodLogger
from runpod.serverless.modules.rp_progress import progress_update

__all__ = ["progress_update", "register_fitness_check", "runpod_version", "start"]
runpod_version = "1.12.0"
log = RunPodLogger()


def start(config: Dict[str, Any]) -> None:
    """Serve `config["handler"]`. The dialect puts its own function here as soon as a script imports this."""
    raise RuntimeError("this stand-in for runpod works only in a worker of Panglot: pip install runpod")
