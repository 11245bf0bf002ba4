import asyncio

from fastapi import HTTPException
from starlette.responses import StreamingResponse


class Model:
    def __init__(self, config, secrets):
        self.running = 0
        self.most = 0

    async def preprocess(self, model_input):
        await asyncio.sleep(0)
        return model_input

    async def predict(self, model_input):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self.done(model_input)
        finally:
            self.running -= 1

    async def done(self, model_input):
        op = model_input.get("op")
        if op == "stream":
            return self.parts()
        if op == "plain stream":
            return (part for part in ("c", b"d"))
        if op == "response":
            return StreamingResponse(self.parts(), media_type="text/event-stream", headers={"x-own": "yes"})
        if op == "moved":
            return StreamingResponse(self.parts(), 302, headers={"location": "/there"})
        if op == "breaks":
            return self.breaking()
        if op == "raise":
            raise ValueError("a secret of the script")
        if op == "tea":
            raise HTTPException(418, "tea")
        if op == "most":
            return self.most
        if op == "sleep":
            await asyncio.sleep(0.5)
        return model_input

    async def parts(self):
        for part in ("a", b"b"):
            await asyncio.sleep(0)
            yield part

    async def breaking(self):
        yield "a"
        raise ValueError("in the middle")
