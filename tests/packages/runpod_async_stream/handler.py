"""An async generator, as workers around engines with an async interface are."""

import asyncio

import runpod


async def handler(job):
    for number in range(int(job["input"]["count"])):
        await asyncio.sleep(0.05)
        yield number


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
