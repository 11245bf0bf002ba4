"""Does what a request says, for the tests of every row of the platform's behaviour."""

import os
import time
from pathlib import Path

import numpy as np
from fastapi import HTTPException
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

from model.words import LETTERS


class Model:
    """Echo, and more."""

    def __init__(self, **kwargs):
        self._given = kwargs
        self._loads = 0

    def load(self):
        self._loads += 1

    def preprocess(self, model_input):
        if isinstance(model_input, dict):
            model_input["pre"] = 1
        return model_input

    def predict(self, model_input):
        op = model_input.get("op") if isinstance(model_input, dict) else None
        method = getattr(self, f"_{op}", None) if isinstance(op, str) else None
        return method(model_input) if method else model_input

    def _raise(self, model_input):
        raise ValueError("a secret of the script")

    def _tea(self, model_input):
        raise HTTPException(status_code=418, detail="tea")

    def _detail(self, model_input):
        raise HTTPException(409, detail={"why": ["taken"]})

    def _starlette(self, model_input):
        raise StarletteHTTPException(418, "tea")

    def _numpy(self, model_input):
        return {"a": np.float32(1), "b": np.arange(2), "c": np.int64(3)}

    def _bytes(self, model_input):
        return b"raw"

    def _set(self, model_input):
        return {1, 2}

    def _nan(self, model_input):
        return {"a": float("nan")}

    def _tuple(self, model_input):
        return (1, 2)

    def _none(self, model_input):
        return None

    def _letters(self, model_input):
        return "käse 猫"

    def _stream(self, model_input):
        def parts():
            yield from LETTERS

        return parts()

    def _bytestream(self, model_input):
        return (part for part in (b"\x00", b"\xff"))

    def _halves(self, model_input):
        return (part for part in ("ä".encode()[:1], "ä".encode()[1:]))

    def _breaks(self, model_input):
        yield "a"
        raise ValueError("in the middle")

    def _json(self, model_input):
        return JSONResponse({"x": 1}, 201, headers={"x-own": "yes"})

    def _text(self, model_input):
        return PlainTextResponse("no", 404)

    def _empty(self, model_input):
        return PlainTextResponse("", 204)

    def _events(self, model_input):
        return StreamingResponse((f"data: {i}\n\n" for i in range(2)), media_type="text/event-stream")

    def _given_names(self, model_input):
        return sorted(self._given)

    def _about(self, model_input):
        return {
            "data_dir": str(self._given["data_dir"]),
            "is_path": isinstance(self._given["data_dir"], Path),
            "name": self._given["config"]["model_name"],
            "environment": self._given["environment"],
            "lazy": self._given["lazy_data_resolver"].block_until_download_complete(),
            "greeting": os.environ["GREETING"],
            "module": type(self).__module__,
            "here": os.path.exists("config.yaml"),
            "loads": self._loads,
        }

    def _secret(self, model_input):
        secrets = self._given["secrets"]
        if model_input["name"] == "*":
            return list(secrets)
        return [secrets[model_input["name"]], len(secrets)]

    def _sleep(self, model_input):
        start = time.monotonic()
        time.sleep(0.3)
        return [start, time.monotonic()]
