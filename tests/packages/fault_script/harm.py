"""What the scripts beside this file do to themselves when an item asks for it."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import subprocess
import time


class NotFine(Exception):
    """Says by its status that the client is wrong."""

    status = 422


def act(item):
    """Do what `item["op"]` says, then answer with the item's own id."""
    op = item.get("op", "echo")
    if op != "echo":
        ACTIONS[op](item)
    return {"id": item["id"], "twice": 2 * item["id"]}


def wait(item):
    """Say so, then wait until a file exists."""
    say(f"item {item['id']} waits")
    gate = pathlib.Path(item["gate"])
    while not gate.exists():
        time.sleep(0.005)


def note(item):
    say(f"item {item['id']} was executed")


def sleep(item):
    time.sleep(item["seconds"])


def fail(item):
    raise ValueError(f"item {item['id']} is poison")


def refuse(item):
    raise NotFine("there is no face in this picture")


def leave(item):
    raise SystemExit(item.get("code", 0))


def interrupt(item):
    raise KeyboardInterrupt


def vanish(item):
    os._exit(item.get("code", 0))


def crash(item):
    ctypes.string_at(0)


def signal_itself(item):
    os.kill(os.getpid(), signal.Signals[item["signal"]])
    time.sleep(5)


def loop(item):
    say(f"item {item['id']} loops")
    while True:
        pass


def hold_gil(item):
    say(f"item {item['id']} holds the interpreter")
    ctypes.PyDLL(None).sleep(600)


def start_children(item):
    """Leave a child and a grandchild behind."""
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sh", "-c", "sleep 600 & wait"])


def say(text):
    print(text, flush=True)


ACTIONS = {
    "wait": wait,
    "note": note,
    "sleep": sleep,
    "fail": fail,
    "refuse": refuse,
    "leave": leave,
    "interrupt": interrupt,
    "vanish": vanish,
    "crash": crash,
    "signal": signal_itself,
    "loop": loop,
    "hold_gil": hold_gil,
    "children": start_children,
}
