"""Shows what it gets, and does what it is told."""

import os
import signal
import time

from ts.handler_utils.utils import send_intermediate_predict_response
from ts.metrics.dimension import Dimension
from ts.utils.util import PredictionException


class EchoHandler:
    def __init__(self):
        self.initialized = 0

    def initialize(self, context):
        self.initialized += 1
        self.started = context

    def handle(self, data, context):
        assert context is self.started
        if context.get_request_header(0, "describe") == "True":
            return [{"labels": ["a", "b"], "data": data, "explain": str(context.get_request_header(0, "explain"))}]
        return [self.one(index, row, context, len(data)) for index, row in enumerate(data)]

    def one(self, index, row, context, size):  # noqa: C901
        body = row.get("body")
        act = body.get("act") if isinstance(body, dict) else bytes(row.get("act", b"")).decode()
        if act == "raise":
            raise ValueError("no")
        if act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if act == "teapot":
            raise PredictionException("bad thing", 418)
        if act and act.startswith("code "):
            raise PredictionException("bad thing", int(act[5:]))
        if act == "cuda":
            raise RuntimeError("CUDA out of memory")
        if act == "memory":
            raise MemoryError
        if act == "set":
            return {1}
        if act == "bytes":
            return b"\x00\xff"
        if act == "text":
            return "text"
        if act == "status":
            context.set_response_status(299, "Fine", index)
            context.set_response_content_type(index, "text/csv")
            context.set_response_header(index, "x-a", "b")
            return "1,2"
        if act == "measure":
            context.metrics.add_counter("Seen", 2, dimensions=[Dimension("Kind", "cat")])
            context.metrics.add_time("Took", 5)
        if act == "stream":
            for number in range(3):
                parts = ["part %d;" % number] * size
                send_intermediate_predict_response(
                    parts, context.request_ids, "Intermediate Prediction success", 200, context
                )
            return "end"
        if act == "fail and go on":
            context.set_response_content_type(index, "text/event-stream")
            for status in (200, 500, 500, 500):
                context.set_response_status(status, "", index)
                send_intermediate_predict_response(["data: part\n\n"], context.request_ids, "", status, context)
                time.sleep(0.1)
            return "data: end\n\n"
        if act == "sequence":
            return context.get_sequence_id(index)
        if act == "headers":
            return dict(context.get_all_request_header(index))
        if act == "context":
            return {
                "name": context.model_name,
                "properties": context.system_properties,
                "config": context.model_yaml_config,
                "manifest": context.manifest,
                "id": context.get_request_id(index),
                "cwd": os.getcwd(),
                "type": context.get_request_header(index, "content-type"),
                "size": size,
                "initialized": self.initialized,
            }
        return {
            name: [type(value).__name__, value.decode() if isinstance(value, bytearray) else value]
            for name, value in row.items()
        }
