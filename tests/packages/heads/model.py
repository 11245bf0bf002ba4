"""Tells what it knows of its requests."""

import time

from panglot import request, requests, route


def told(one):
    return {
        "id": one.id,
        "path": one.path,
        "headers": dict(one.headers),
        "query": dict(one.query),
        "client": one.client,
        "deadline": one.deadline,
        "traceparent": one.traceparent,
    }


class Model:
    def preprocess(self, item):
        return [item, request().id]

    def predict(self, item):
        if item[0] == "write":
            request().headers["a"] = "b"
        return [item, told(request())]

    def postprocess(self, output):
        return {"item": output[0], "request": output[1], "after": request().id}

    @route("/together", batch=True)
    def together(self, items):
        time.sleep(0.02)
        if "wrong" in items:
            request()
        return [[item, one.id, one.headers["x-number"]] for item, one in zip(items, requests())]  # noqa: B905

    @route("/words")
    def words(self, item):
        for _ in range(3):
            yield request().id
