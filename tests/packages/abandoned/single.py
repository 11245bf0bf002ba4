"""Calls that take long, each in another way; what becomes of each is written to the file that the body names."""

import hashlib
import os
import subprocess
import sys
import threading
import time

from panglot import Interrupted, progress


def predict(body: dict):
    way = WAYS.get(body.get("way"))
    if way is None:
        return {"pid": os.getpid()}
    note(body, "begun")
    try:
        answer = way(body)
    except Interrupted:
        note(body, "interrupted")
        raise
    if way is stream:
        return answer
    note(body, "finished")
    return {"pid": os.getpid()}


def note(body, word):
    # One write: a reader must never see half a line.
    with open(body["file"], "a") as file:
        file.write(word + "\n")


def loop(body):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def nap(body):
    time.sleep(body.get("seconds", 60))


def lock(body):
    taken = threading.Lock()
    taken.acquire()
    taken.acquire()


def command(body):
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"])


def reports(body):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        progress(0.5, "x" * 20000)
        print("y" * 200)


def catches(body):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
        except Exception:
            note(body, "caught")


def cleans(body):
    try:
        time.sleep(60)
    finally:
        time.sleep(0.5)
        note(body, "cleaned")


def native(body):
    # One call into C of a minute, which no signal ends.
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 60_000_000)


def swallow(body):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            time.sleep(1)
        except BaseException:
            note(body, "swallowed")


def fork(body):
    child = os.fork()
    if child == 0:
        note(body, f"child {os.getpid()}")
        time.sleep(60)
        os._exit(0)
    os.waitpid(child, 0)


def exits(body):
    try:
        time.sleep(60)
    except BaseException:
        sys.exit(1)


def stream(body):
    def parts():
        try:
            yield {"part": 1}
            time.sleep(60)
            yield {"part": 2}
        # A client that leaves before the nap has begun: then the generator is closed where it stands.
        except (Interrupted, GeneratorExit):
            note(body, "interrupted")
            raise

    return parts()


WAYS = {
    way.__name__: way
    for way in (loop, nap, lock, command, reports, catches, cleans, native, swallow, fork, exits, stream)
}
