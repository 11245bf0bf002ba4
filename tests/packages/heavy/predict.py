"""Holds 96 MiB of memory, all of it touched."""

import time

WEIGHT = bytes(range(256)) * (96 << 12)


def predict(request):
    time.sleep(request.get("sleep", 0))
    return {"id": request["id"], "bytes": len(WEIGHT)}
