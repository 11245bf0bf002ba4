"""An echo that takes as long as it is asked to."""

import time


def predict(request):
    time.sleep(request["seconds"])
    return request
