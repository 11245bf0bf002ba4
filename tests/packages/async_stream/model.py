import asyncio


async def predict(request):
    for number in range(request["count"]):
        await asyncio.sleep(0.001)
        yield number
