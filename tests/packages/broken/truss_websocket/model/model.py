import fastapi


class Model:
    async def websocket(self, websocket: fastapi.WebSocket):
        await websocket.send_text("hello")
