"""What a worker needs of a node, and which packages and settings do not go together with nodes."""

from __future__ import annotations

from collections.abc import Mapping

from panglot.errors import StartError
from panglot.packages.package import Package
from panglot.settings import Settings

SHARED = "shared"
"""Of --ray-files: all paths lead to the same files on the nodes."""


def check(package: Package, settings: Settings) -> None:
    """Raise StartError for what does not go together with --ray."""
    refused = {
        "--inline runs the script in this process": (settings.inline, "leave out --inline or --ray"),
        "Ray assigns devices, so --device has no meaning": (
            not is_cpu(settings.device),
            "use --worker-resources gpu=1",
        ),
        "--mps is for the GPUs of this machine": (
            settings.mps,
            "start MPS on the nodes, and use --worker-resources gpu=0.5",
        ),
        "--link-paths makes links on this machine only": (settings.link_paths, "make the links on the nodes"),
        "a pool with a device of its own: Ray assigns devices": (
            any(not is_cpu(pool.device) for pool in settings.pools.values()),
            "use --worker-resources gpu=1",
        ),
        "memory budgets count the memory of this machine": (
            settings.memory_budget or settings.gpu_memory_budget,
            "leave them out: nodes are chosen by --worker-resources, and --sleep-after gives placements back",
        ),
        "this package serves nothing, it runs to its end": (package.runs_to_its_end, "leave out --ray"),
    }
    if settings.ray_files != SHARED:
        for path in package.elsewhere:
            problem = f"{path} does not lie in {package.root}, which is what the nodes are sent"
            raise StartError(f"--ray: {problem}", fix="put it there, or have it on the nodes: --ray-files shared")
    for problem, (given, fix) in refused.items():
        if given:
            raise StartError(f"--ray: {problem}", fix=fix)


def is_cpu(device: str) -> bool:
    """Whether --device asks for nothing that Ray would have to give."""
    return device in ("", "cpu")


def as_text(needs: Mapping[str, float]) -> str:
    """The text that --worker-resources takes for these needs."""
    return ",".join(f"{name}={amount:g}" for name, amount in needs.items())
