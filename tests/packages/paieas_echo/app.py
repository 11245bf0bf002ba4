"""Answers with what it was asked for, or with what it was given."""

import json
import os
import sys

import allspark

allspark.default_properties().put("rpc.keepalive", "20000").put("rpc.io_threads", "4")
RESULTS = {
    "text": ("text", 200), "zero": (b"fine", 0), "float": (0.5, 0), "json": ('{"a": 1}', 200), "dict": ({"a": 1}, 200),
    "none": (None, 200), "alone": b"alone", "not found": (b"none", 404), "odd": (b"odd", 1001), "negative": (b"x", -1),
    "number": (b"12", 200), "word": (b"nobody", 200), "status": (b"x", "many"), "object": (object(), 200),
    "binary": (bytes(range(256)), 200),
}  # fmt: skip


class Echo(allspark.BaseProcessor):
    """Describes its requests."""

    count = 0

    def initialize(self):
        self.initialized = getattr(self, "initialized", 0) + 1

    def process(self, data):
        self.count += 1
        try:
            order = json.loads(data)
        except ValueError:
            order = {}
        if not isinstance(order, dict) or not order:
            return json.dumps({"type": type(data).__name__, "size": len(data), "head": data[:8].hex()}), 200
        if "raise" in order:
            raise ValueError("a secret of the script")
        if "return" in order:
            return RESULTS[order["return"]]
        return json.dumps({
            "argv": sys.argv[1:], "name": __name__, "cwd": os.getcwd(), "initialized": self.initialized,
            "model_path": self.get_model_path(), "keepalive": allspark.default_properties().get("rpc.keepalive"),
            "unknown": allspark.default_properties().get("rpc.unknown"), "threads": self.worker_threads,
        }), 200  # fmt: skip


if __name__ == "__main__":
    Echo(worker_threads=3, endpoint="0.0.0.0:9999").run()
    raise SystemExit("nothing after run() is reached")
