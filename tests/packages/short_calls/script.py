"""Takes one call at a time, notes each in a file, and answers it after half a millisecond or behind a gate."""

import os
import time


def predict(item):
    if "notes" in item:
        # One write of a few bytes to the end of a file: those of other workers do not come in between.
        file = os.open(item["notes"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b"%d\n" % item["id"])
        os.close(file)
    gate = item.get("gate")
    while gate and not os.path.exists(gate):
        time.sleep(0.005)
    time.sleep(0.0005)
    return {"id": item["id"], "pid": os.getpid()}
