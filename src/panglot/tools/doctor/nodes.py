"""The Ray cluster that --ray names: whether it can be reached, and how long it takes to get a placement there."""

from __future__ import annotations

import asyncio
import logging
import time

from panglot.engine.ray.cluster import Cluster
from panglot.engine.ray.needs import as_text
from panglot.errors import StartError
from panglot.settings import Settings
from panglot.terminal.text import counted
from panglot.tools.doctor.finding import PROBLEM, WARNING, Finding

CLUSTER = "cluster"
PATIENCE = 60.0
"""Seconds after which a placement that cannot be had is a problem."""
TOKEN = "RAY_AUTH_MODE=token, where the cluster is started and here"  # noqa: S105  the name of a variable


def examine(settings: Settings) -> list[Finding]:
    """Connect to the cluster, and take a placement there for a moment. Without a cluster there are no findings."""
    if not settings.ray:
        return []
    # The findings say the same as the log, and stand in a table.
    log = logging.getLogger("panglot.ray")
    before, log.disabled = log.disabled, True
    try:
        return asyncio.run(_examine(settings))
    finally:
        log.disabled = before


async def _examine(settings: Settings) -> list[Finding]:
    cluster = Cluster(settings)
    findings = []
    try:
        began = time.monotonic()
        await cluster.start()
        about = f"Ray {cluster.version} at {settings.ray}, {counted(cluster.nodes, 'node')}"
        findings.append(Finding(CLUSTER, "connected", f"{about}, after {time.monotonic() - began:.1f} s"))
        if not cluster.has_token:
            findings.append(Finding(CLUSTER, "token", "whoever reaches it can run code on its nodes", WARNING, TOKEN))
        findings.append(await _placed(cluster, dict(settings.worker_resources) or {"cpu": 1.0}))
    except StartError as error:
        findings.append(Finding(CLUSTER, "connected", error.problem, PROBLEM, error.fix))
    finally:
        await cluster.close()
    return findings


async def _placed(cluster: Cluster, needs: dict[str, float]) -> Finding:
    """Whether a placement can be had, and its agent be reached from here."""
    began, placement = time.monotonic(), cluster.ask(needs)
    try:
        async with asyncio.timeout(PATIENCE):
            # Shielded: the future belongs to the placement, which goes on without this wait.
            await asyncio.shield(placement.ready)
    except TimeoutError:
        fix = "add nodes, or ask for less with --worker-resources"
        return Finding(CLUSTER, "placement", f"no node has {as_text(needs)} free", PROBLEM, fix)
    except OSError as error:
        return Finding(CLUSTER, "placement", str(error), PROBLEM, getattr(error, "fix", ""))
    where = f"{as_text(needs)} on node {placement.node}, port {placement.about['port']}"
    return Finding(CLUSTER, "placement", f"{where}, after {time.monotonic() - began:.1f} s")
