"""The slots of models that a front loads for a change of its server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from panglot.fronts.messages import Drop, StageModel
from panglot.serving.fronts.models import ModelsOfFront


class SlowFolder:
    """A folder whose models load for ever."""

    def __init__(self) -> None:
        self.begun = 0

    async def stage(self, name: str) -> list[Any]:
        self.begun += 1
        await asyncio.Event().wait()
        return []


def test_a_load_that_is_cancelled_leaves_the_slots_of_the_next_load_alone() -> None:
    async def test() -> None:
        used: list[int] = []
        board = SimpleNamespace(sleep=SimpleNamespace(of_parent=used.append))
        catalog = SimpleNamespace(failed={}, served={})
        member: Any = SimpleNamespace(board=board, catalog=catalog, tell=lambda message: None)
        host: Any = SimpleNamespace()
        folder: Any = SlowFolder()
        ModelsOfFront(host, member).use(folder)
        member.on_change(StageModel(1, "echo", [5]))
        await asyncio.sleep(0)
        member.on_change(Drop(1, "echo", [5], ""))
        member.on_change(StageModel(2, "echo", [6]))
        while folder.begun < 2:
            await asyncio.sleep(0)
        for _ in range(5):
            # The cancelled load ends.
            await asyncio.sleep(0)
        engine: Any = SimpleNamespace(context=SimpleNamespace(share=SimpleNamespace(has_workers=False)))
        host.make_sleep(SimpleNamespace(name="echo", version="1"), engine, None)
        assert used == [6]

    asyncio.run(test())
