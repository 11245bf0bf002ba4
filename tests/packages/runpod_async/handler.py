"""An async handler that runs several jobs at once, and says how many."""

import asyncio

import runpod

lock = asyncio.Lock()
running = [0]
most = [0]


async def handler(event):
    running[0] += 1
    try:
        async with lock:
            pass
        most[0] = max(most[0], running[0])
        await asyncio.sleep(float(event["input"].get("seconds", 0)))
        if event["input"].get("raise"):
            raise KeyError("prompt")
        return {"most": most[0], "prompt": event["input"].get("prompt")}
    finally:
        running[0] -= 1


def adjust_concurrency(current_concurrency):
    return min(current_concurrency + 1, 4)


runpod.serverless.start({"handler": handler, "concurrency_modifier": adjust_concurrency})
