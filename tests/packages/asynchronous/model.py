import asyncio


async def predict(request):
    await asyncio.sleep(request["sleep"])
    return request["id"]
