"""Tells the digest of what it gets, keeps it, writes to it, or looks at it later: as its media type asks."""

import hashlib
import os
import threading
import time

from panglot import File

kept = {}
threads = []


def predict_batch(requests):
    return [answer(request) for request in requests]


def predict(request):
    return answer(request)


def answer(request):
    if isinstance(request, dict):
        if "check" in request:
            return check()
        if "answer" in request:
            return bytes(os.urandom(1)) * int(request["answer"])
        if "gate" in request:
            print("waits", os.getpid(), flush=True)
            while not os.path.exists(request["gate"]):
                time.sleep(0.005)
            return {"pid": os.getpid()}
        return {name: digest(value.bytes) for name, value in request.items() if isinstance(value, File)}
    own = digest(request.view)
    order = request.type.partition("/")[2]
    if order == "keep":
        kept[own] = request
    elif order == "view":
        kept[own] = request.view
    elif order == "thread":
        threads.append(threading.Thread(target=later, args=(request, own)))
        threads[-1].start()
    elif order == "write":
        return {"digest": own, "refused": is_refused(request.view)}
    elif order == "crash":
        os._exit(9)
    elif order == "echo":
        return request.bytes
    return {"digest": own, "size": len(request), "pid": os.getpid()}


def is_refused(view):
    try:
        view[0] = 1
    except TypeError:
        return True
    return False


def later(request, own):
    time.sleep(0.05)
    kept[own + " again"] = digest(request.bytes) == own


def check():
    """Whether everything kept is still what it was; then it is let go."""
    while threads:
        threads.pop().join()
    count, wrong = len(kept), []
    for own, value in list(kept.items()):
        right = (
            value if isinstance(value, bool) else digest(value if isinstance(value, memoryview) else value.bytes) == own
        )
        if not right:
            wrong.append(own)
    kept.clear()
    return {"kept": count, "wrong": wrong, "pid": os.getpid()}


def digest(data):
    return hashlib.blake2b(data, digest_size=16).hexdigest()
