"""Takes its time, and says when it begins. With `parts` it answers by a stream."""

import time


def predict(value):
    print("item", value["id"], "begins", flush=True)
    time.sleep(value.get("before", 0))
    return stream(value) if "parts" in value else {"id": value["id"]}


def stream(value):
    for part in range(value["parts"]):
        yield {"id": value["id"], "part": part}
        time.sleep(value.get("between", 0))
