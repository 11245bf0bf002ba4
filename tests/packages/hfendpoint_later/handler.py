import asyncio


class EndpointHandler:
    def __init__(self, path=""):
        pass

    async def __call__(self, data):
        await asyncio.sleep(0)
        return {"later": data["inputs"]}
