"""What C libraries and started programs print on a node is in the answers, and in the front's log."""

from __future__ import annotations

import pytest

from support.on_nodes import on_nodes
from support.ray_cluster import RayCluster
from support.server import wait_until

pytestmark = pytest.mark.timeout(400)


def test_it_comes_from_a_node_with_the_last_words_of_a_crash(inside: RayCluster) -> None:
    with on_nodes(inside, path="cog_native", workers=1) as server:

        def predicted(how: str) -> tuple[int, str]:
            answer = server.client.post("/predictions", json={"input": {"how": how}}, timeout=120)
            return answer.status_code, answer.json().get("logs", "")

        assert sorted(predicted("programs")[1].splitlines()) == [
            "an error",
            "from a shell",
            "into our own stream",
            "more",
        ]
        server.wait_log("into our own stream")
        predicted("dies")
        server.wait_log("last words of a library", 60)
        wait_until(lambda: predicted("order")[0] == 200, 120)
