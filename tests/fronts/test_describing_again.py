"""After a reload, a front without workers asks for the descriptions of models while models come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from panglot.engine.workers.shares import FrontShare
from panglot.metrics.counters import Metrics
from panglot.serving.models.host import ModelHost
from panglot.serving.planning import Planner
from panglot.settings import counts
from panglot.web.access.tokens import Access
from panglot.web.limits.quota import Quota
from support.models import write_model


def run(folder: Path, test: Callable[[ModelHost], Awaitable[None]]) -> None:
    """Run a test with the second front of a server of two: one worker of each model is the first front's."""

    async def prepared() -> None:
        plan = Planner({"models": str(folder), "workers": counts.parse("1")}, {}).server_plan([])
        host = ModelHost(plan, Access(b"", frozenset()), Quota(plan.settings), Metrics(), FrontShare(front=1, fronts=2))
        host.begin()
        try:
            await asyncio.wait_for(test(host), 20)
        finally:
            await host.close()

    asyncio.run(prepared())


def test_a_model_that_comes_or_goes_meanwhile_disturbs_nothing(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_model(tmp_path / name)

    async def test(host: ModelHost) -> None:
        async def described(name: str, version: str) -> dict[str, Any]:
            # While it is asked for, another version is loaded, which is not served yet.
            host.make(next(plan for plan in host.plan.models if plan.name == name))
            await asyncio.sleep(0)
            return {"of": name}

        host.described_elsewhere = described
        await host.describe_again()
        assert [hosted.engine.description for hosted in host.hosted.values()][:2] == [{"of": "first"}, {"of": "second"}]

    run(tmp_path, test)


def test_a_model_that_ends_is_no_longer_asked_for(tmp_path: Path) -> None:
    write_model(tmp_path / "echo")

    async def test(host: ModelHost) -> None:
        asked = asyncio.Event()

        async def described(name: str, version: str) -> dict[str, Any]:
            asked.set()
            # The front that has its workers has ended the model, and does not answer.
            await asyncio.Event().wait()
            raise AssertionError

        host.described_elsewhere = described
        again = asyncio.ensure_future(host.describe_again())
        await asked.wait()
        (model,) = host.hosted
        await host.stop(model)
        await again

    run(tmp_path, test)
