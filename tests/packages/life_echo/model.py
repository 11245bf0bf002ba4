import os
import time

VERSION = 1


def predict(request):
    time.sleep(request.get("sleep", 0))
    return {"id": request["id"], "version": VERSION, "pid": os.getpid()}
