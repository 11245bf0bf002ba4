"""The check of fronts by `panglot doctor`: how many suit this machine, and whether running ones are the bottleneck."""

from __future__ import annotations

import contextlib
import http.client
import json
import os

from panglot.machine.cpus import usable_cpus
from panglot.machine.front_count import automatic
from panglot.settings import Settings
from panglot.terminal.text import counted
from panglot.tools.doctor.finding import WARNING, CheckResult
from panglot.tools.listening import listener

PATIENCE = 2.0
LARGEST = 16 << 20
"""Bytes of the figures that are read."""


def fronts(settings: Settings, cpus: float | None = None) -> CheckResult:
    """The number of fronts, with a warning where the fronts of a server on this port are its bottleneck."""
    cpus = usable_cpus() if cpus is None else cpus
    workers = settings.workers.least
    suited = automatic(workers, cpus)
    count = settings.fronts or suited
    advice = _advice_of_running(settings)
    if advice:
        return CheckResult(f"the server on port {settings.port}: {advice}", WARNING, advice.rpartition("try ")[2])
    if count > max(workers, 1):
        fix = f"--workers {count}, or fewer fronts"
        shown = counted(max(workers, 1), "worker")
        return CheckResult(f"{count} for {shown}, which the first has: the others pass calls on", WARNING, fix)
    if suited > count:
        return CheckResult(
            f"{count}; for {counted(workers, 'worker')} on {counted(cpus, 'CPU')}, --fronts auto starts {suited}"
        )
    return CheckResult(f"{count}, which suits {counted(max(workers, 1), 'worker')} on {counted(cpus, 'CPU')}")


def _advice_of_running(settings: Settings) -> str:
    """The advice of a running server on this port about its fronts; empty without a server or an advice."""
    if not settings.port or settings.tls_cert or listener(settings.port) is None:
        return ""
    token = os.environ.get("PANGLOT_TOKEN", "")
    connection = http.client.HTTPConnection("127.0.0.1", settings.port, timeout=PATIENCE)
    # Any program may listen there: an answer that is not Panglot's counts as no advice.
    with (
        contextlib.suppress(OSError, http.client.HTTPException, ValueError, RecursionError),
        contextlib.closing(connection),
    ):
        connection.request("GET", "/status.json", headers={"Authorization": f"Bearer {token}"} if token else {})
        figures = json.loads(connection.getresponse().read(LARGEST))
        if isinstance(figures, dict):
            return str(figures.get("advice", ""))
    return ""
