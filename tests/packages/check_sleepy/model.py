"""Takes a while, and says with which arguments it was started."""

import sys
import time


def predict(request):
    time.sleep(request["seconds"])
    return {"slept": request["seconds"], "arguments": sys.argv[1:]}
