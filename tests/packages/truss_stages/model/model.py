import os

from fastapi import HTTPException
from starlette.responses import JSONResponse, StreamingResponse


class Model:
    def __init__(self, **kwargs):
        self._model = None

    def load(self):
        self._model = "loaded"

    def preprocess(self, model_input):
        if model_input.get("fail") == "preprocess":
            raise ValueError("a secret of the script")
        if model_input.get("fail") == "tea":
            raise HTTPException(418, "tea")
        return {**model_input, "way": ["pre"], "processes": [os.getpid()]}

    def predict(self, model_input):
        if model_input.get("give") == "generator":
            return (part for part in "ab")
        if model_input.get("give") == "response":
            return JSONResponse({})
        return {**model_input, "way": [*model_input["way"], self._model]}

    def postprocess(self, output):
        if output.get("fail") == "postprocess":
            raise ValueError("a secret of the script")
        if output.get("give") == "late generator":
            return (part for part in "cd")
        if output.get("give") == "late response":
            return JSONResponse({"late": True}, 202)
        if output.get("give") == "late stream":
            return StreamingResponse((part for part in "ef"), 207)
        processes = len({*output.pop("processes"), os.getpid()})
        return {**output, "way": [*output["way"], "post"], **({"processes": processes} if "count" in output else {})}
