import fastapi
from starlette.requests import Request


class Model:
    def __init__(self, **kwargs):
        pass

    def preprocess(self, request: fastapi.Request):
        request.state.seen = "in preprocess"
        return {"body": request._body.decode()}

    async def predict(self, model_input, request: Request):
        return {
            **model_input,
            "header": request.headers.get("x-own"),
            "agent": "authorization" in request.headers,
            "method": request.method,
            "path": request.url.path,
            "query": dict(request.query_params),
            "json": await request.json() if model_input["body"].startswith("{") else None,
            "gone": await request.is_disconnected(),
            "state": request.state.seen,
        }

    def postprocess(self, model_output, request: Request):
        return {**model_output, "after": request.state.seen}
