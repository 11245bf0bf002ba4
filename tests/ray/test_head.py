"""Ray's head gone for good: the server waits for a cluster, and says so."""

from __future__ import annotations

import os
import re
import signal

import pytest

from support.on_nodes import LONG, drivers, workers
from support.ray_cluster import RayCluster
from support.server import serving, wait_until
from support.traffic import SOAK, send

pytestmark = pytest.mark.timeout(600)
RECONNECT = "60" if SOAK else "5"
"""Seconds after which Ray gives up a head that does not come back; 60 where nothing else is said."""


def test_without_a_head_for_good_calls_are_told_to_come_again() -> None:
    """Ray ends nodes and driver then; the server waits, and is back soon after the cluster is.

    Before that the raylet beside the front is lost alone: its driver goes over to another.
    """
    alone = RayCluster((2,), settings={"RAY_gcs_rpc_server_reconnect_timeout_s": RECONNECT})
    try:
        env = {**alone.environment, **alone.settings}
        with alone.network.entered(), serving("on_nodes", *alone.flags, "--timeout", "4s", env=env) as server:
            for pid in alone.commands(1, "/raylet"):
                os.kill(pid, signal.SIGKILL)
            server.wait_log("the driver of Ray ended: it is started again, and the workers go on", LONG)
            assert server.predict({"id": 0}).json()["id"] == 0
            wait_until(lambda: len(re.findall("connected to Ray", server.log)) == 2, LONG, lambda: server.log)
            alone.kill(1)
            wait_until(lambda: not workers(alone) and not alone.commands(2, "/raylet"), LONG)
            wait_until(lambda: server.ready() == 503, LONG)
            wait_until(lambda: not drivers(server) or "nothing answers there" in server.log, LONG)
            answer = send(server, {"id": 1}).result(LONG)
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "no_place", "5")
            assert answer.seconds > 3, "calls wait to their deadline"
            assert "cannot be reached" in answer.json()["error"]["message"]
            assert server.metric("panglot_placements", state="waiting") == 1
            assert server.metric("panglot_placements", state="used") == 0
            assert server.client.get("/v2/health/live").status_code == 200
            waiting = send(server, {"id": 2}, 600_000)
            alone.start_head()
            alone.start(2, 2)
            wait_until(lambda: server.ready() == 200, LONG, lambda: server.log)
            assert waiting.result(LONG).status in (200, 503)
            assert server.predict({"id": 3}).json()["id"] == 3
    finally:
        alone.close()
