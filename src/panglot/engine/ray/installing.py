"""The environment of a script on a node: made there by a process of its own, before the first worker starts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from panglot.engine.processes.output import ScriptOutput
from panglot.engine.ray.placement import Placement, PlacementLost
from panglot_worker.life.installing import Wish
from panglot_worker.node.handshake import heard

ENTRY = ("panglot_worker.node.installer", "main")


async def environment(placement: Placement, wish: Wish, launch: dict[str, Any], output: ScriptOutput) -> str:
    """The interpreter on a node that has what a package asks for. Raises OSError where it cannot be made."""
    key = json.dumps([wish, launch["python"]])
    if key not in placement.pythons:
        placement.pythons[key] = await _make(placement, wish, launch, output)
    return placement.pythons[key]


async def _make(placement: Placement, wish: Wish, launch: dict[str, Any], output: ScriptOutput) -> str:
    # Negative, because the worker that is started next has this number, and numbers of workers are positive.
    generation = -int(launch["generation"])
    process = {**launch, "generation": generation, "entry": ENTRY, "environment": {}, "links": {}}
    process["native_output"] = False
    sock = await placement.start(generation, process, output)
    reader, writer = await asyncio.open_connection(sock=sock, **placement.encryption)
    try:
        said = {"wish": wish._asdict(), "python": launch["python"]}
        writer.write(json.dumps(said).encode() + b"\n")
        line = await reader.readline()
    finally:
        writer.transport.abort()
    if not line:
        raise PlacementLost("the process that installs what the package asks for said nothing; the log has more")
    answer = heard(line)
    if "python" not in answer:
        raise PlacementLost(
            f"on node {placement.node}, {answer.get('problem')}", fix="correct what the package asks for"
        )
    return str(answer["python"])
