"""Takes lists. A bad item spoils the call it is in."""

import os
import time

import tiinfer


class Batch(tiinfer.Model):
    def load(self):
        return True

    def predict(self, request):
        time.sleep(max((item.get("sleep", 0) for item in request), default=0))
        for item in request:
            while "gate" in item and not os.path.exists(item["gate"]):
                time.sleep(0.01)
        if any(item.get("bad") for item in request):
            raise ValueError("a bad item")
        return [{"id": item["id"], "batch": len(request)} for item in request]
