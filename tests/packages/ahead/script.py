"""Takes batches, tells which, and waits in one for a gate or ends its process if an item asks for that."""

import os
import time


class Model:
    def predict_batch(self, items):
        ids = [item["id"] for item in items]
        print("batch", *ids, "in", os.getpid(), flush=True)
        for item in items:
            gate = item.get("gate")
            if gate:
                print("item", item["id"], "waits", flush=True)
            while gate and not os.path.exists(gate):
                time.sleep(0.005)
            if item.get("crash"):
                os._exit(9)
        return [{"id": id, "with": ids, "pid": os.getpid()} for id in ids]
