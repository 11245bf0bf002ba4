"""Gives back what it got, when it was told to: a file may have to exist first."""

import os
import time

from panglot import File


def predict(request):
    if isinstance(request, dict):
        if "say" in request:
            print("heard", request["say"], flush=True)
        gate = request.get("gate")
        while gate and not os.path.exists(gate):
            time.sleep(0.005)
        time.sleep(request.get("sleep", 0))
        return {"id": request.get("id"), "size": len(str(request.get("padding", "")))}
    if isinstance(request, File):
        return {"id": None, "size": len(request)}
    return {"id": request}
