"""Several items at once, each answered when it is done."""

from __future__ import annotations

import asyncio
import pathlib

import harm


class Model:
    async def predict(self, item):
        op = item.get("op", "echo")
        if op == "wait":
            harm.say(f"item {item['id']} waits")
            while not pathlib.Path(item["gate"]).exists():
                await asyncio.sleep(0.005)
        elif op == "sleep":
            await asyncio.sleep(item["seconds"])
        elif op == "give_up":
            raise asyncio.CancelledError
        elif op == "block":
            harm.wait(item)
        else:
            return harm.act(item)
        return harm.act({"id": item["id"]})
