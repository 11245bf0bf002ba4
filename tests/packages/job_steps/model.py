import os
import time

from panglot import Response, progress


def predict(body: dict):
    """Echo, with whatever the body asks for on the way."""
    if body.get("count"):
        with open(body["count"], "a") as file:
            file.write(body.get("name", "") + "\n")
    for step in range(body.get("steps", 0)):
        progress((step + 1) / body["steps"], f"step {step + 1}")
        time.sleep(body.get("pause", 0.05))
    if body.get("sleep"):
        time.sleep(body["sleep"])
    if body.get("raise"):
        raise ValueError(body["raise"])
    if body.get("exit"):
        os._exit(3)
    if body.get("status"):
        return Response(b"own bytes", status=body["status"], headers={"x-own": "yes"})
    if body.get("stream"):
        return (part for part in parts(body["stream"], body.get("pause", 0), body.get("size", 0)))
    if body.get("large"):
        return {"large": "x" * body["large"]}
    return {"echo": body}


def parts(count, pause, size):
    for number in range(count):
        time.sleep(pause)
        yield {"part": number, **({"text": "x" * size} if size else {})}
