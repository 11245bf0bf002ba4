"""Takes frames of videos as well as JSON."""

import time


def predict(request):
    return request


def preprocess(request):
    return {"seen": request}


def postprocess(result):
    return [result]


def predict_frame(frame):
    """The number written in a frame."""
    time.sleep(0.001)
    read = sum(1 << bit for bit in range(12) if frame[4:12, bit * 16 + 4 : bit * 16 + 12].mean() > 125)
    if read == 600:
        raise ValueError("no such frame")
    return {"read": read, "shape": frame.shape}
