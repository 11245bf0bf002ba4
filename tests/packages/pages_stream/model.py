"""Words that come slowly, for as long as somebody listens."""

import time


def predict(request: dict):
    for number in range(2000):
        yield {"text": f"word{number} "}
        time.sleep(0.02)


def example():
    return {"prompt": "say something"}
