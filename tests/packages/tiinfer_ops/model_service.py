"""Does what a request says: one branch for every row of the platform's contract."""

import json
import logging
import os
import time

from mosec import errors

import tiinfer

RAISED = {
    "ValueError": ValueError,
    "ValidationError": errors.ValidationError,
    "DecodingError": errors.DecodingError,
    "EncodingError": errors.EncodingError,
    "ClientError": errors.ClientError,
    "ServerError": errors.ServerError,
}
RETURNED = {
    "nothing": lambda: None,
    "text": lambda: "hi",
    "number": lambda: 1.5,
    "list": lambda: [1, "two", None],
    "keys": lambda: {1: "one", None: 0, False: "no", 2.5: "half"},
    "letters": lambda: {"名": "手写数字 é"},
    "tuple": lambda: (1, (2, 3)),
    "big": lambda: 2**70,
    "nan": lambda: {"value": float("nan"), "most": float("inf")},
    "set": lambda: {1, 2},
    "bytes": lambda: b"abc",
    "object": lambda: object(),
    "complex": lambda: 1j,
    "generator": lambda: (number for number in range(3)),
    "inside": lambda: {"deep": [{"deeper": {1, 2}}]},
    "cycle": lambda: _cycle(),
}


def _cycle():
    value = []
    value.append(value)
    return value


class Ops(tiinfer.Model):
    def __init__(self, model_dir):
        super().__init__(model_dir)
        with open("./mapping.json") as file:
            self.mapping = json.load(file)

    def load(self):
        return True

    def preprocess(self, request):
        if isinstance(request, dict) and "images" in request and not request["images"]:
            return {"error": "invalid param"}
        return request

    def predict(self, request):
        if not isinstance(request, dict) or "op" not in request:
            return request
        return getattr(self, "_" + request["op"])(request)

    def postprocess(self, request):
        if isinstance(request, dict) and request.get("broken"):
            try:
                raise KeyError("pred_out")
            except Exception as e:
                # As in the platform's own samples: the message has no place for the error.
                logging.error("Failed to predict" % (e))  # noqa: F507, UP031
        return request

    def _raise(self, request):
        kind = RAISED[request["kind"]]
        raise kind(request["text"]) if "text" in request else kind()

    def _return(self, request):
        return RETURNED[request["kind"]]()

    def _sleep(self, request):
        time.sleep(request["seconds"])
        return request

    def _about(self, request):
        return {
            "model_dir": self.model_dir == tiinfer.get_ti_model_dir(),
            "mapping": self.mapping,
            "cwd": os.path.basename(os.getcwd()),
        }

    def _pid(self, request):
        time.sleep(0.05)
        return os.getpid()

    def _die(self, request):
        os._exit(7)

    def _instances(self, request):
        return {"instances": 3}
