"""Reads bodies of any kind itself."""

from fastapi import Request, Response


class Model:
    def load(self):
        pass

    async def predict(self, request: Request):
        body = await request.body()
        with request.state.watch_disconnect() as disconnected:
            assert not disconnected.is_set()
        return Response(body[::-1], media_type=request.headers.get("content-type"), headers={"x-own": "yes"})
