"""A handler in the older form: a function, and an object that is made once."""

import os
import signal
import time


class Service:
    def __init__(self):
        self.initialized = False

    def initialize(self, context):
        self.initialized = True

    def inference(self, rows):
        acts = [row.get("body") for row in rows]
        if any(act == "slow" for act in acts):
            time.sleep(0.5)
        if "raise" in acts:
            raise ValueError("no")
        if "kill" in acts:
            os.kill(os.getpid(), signal.SIGKILL)
        return ["%s of %d" % (act, len(acts)) for act in acts]


_service = Service()


def handle(data, context):
    if not _service.initialized:
        _service.initialize(context)
    if data is None:
        return None
    return _service.inference(data)
