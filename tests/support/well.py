"""What a server must not leave behind when a test is done with it: requests, bodies, stuck workers, our own faults."""

from __future__ import annotations

import enum
import platform
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from support.server import Server

HELD = ("panglot_requests_in_progress", "panglot_queue_length", "panglot_shared_bodies", "panglot_request_memory_bytes")
SYSTEM_CALLS = {
    "x86_64": ("0", "1", "20", "44", "45", "46", "47"),
    "aarch64": ("63", "64", "66", "206", "207", "211", "212"),
}
"""Those that read or write: read, write, writev, sendto, recvfrom, sendmsg, recvmsg."""
PATIENCE = 10.0
"""Seconds within which all that clients left behind has to be gone."""
BEGIN = "Traceback (most recent call last)"
FRAME = re.compile(r'File "([^"]+)", line')
JSON_LINE = re.compile(r'^\{"time": .*?"message": "(?P<message>(?:[^"\\]|\\.)*)"(?P<rest>.*)\}$')
SPOKEN = re.compile(r"^\S+ (?P<speaker>\S+/\d+) \| ")
"""Before each line that a worker prints."""
FRONT = re.compile(r"/src/panglot/")
WORKER = re.compile(r"/src/panglot_worker/(?!dialects/\w+/(?:platform|containers)/)")
"""The worker's own code. What stands for a platform's library fails as that does, for the requests that scripts get."""
PYTHONS = re.compile(r"/lib/python3\.\d+/(?!(?:site|dist)-packages/)|^<frozen |^<string>$")
"""The standard library of any CPython, and the words by which a worker is started."""
RAISED = re.compile(r"^\s*raise ", re.MULTILINE)
BLUNDER = re.compile(
    r"^\s*(KeyError|IndexError|NameError|UnboundLocalError|AssertionError|AttributeError: (?!Can't (?:get|pickle) ))",
    re.MULTILINE,
)
"""Errors of our own code, where neither a file of the package nor the call of a script can be at fault."""


class Left(enum.Flag):
    """What a test may leave behind, since that is what it is about."""

    NOTHING = 0
    TRACEBACKS = enum.auto()
    """Faults of our own are in the log."""
    REQUESTS = enum.auto()
    """Requests are in progress, or their bodies are held."""


def check(server: Server, leaves: Left = Left.NOTHING) -> None:
    """Assert that a server holds nothing, once its clients have gone, and that none of its tracebacks is ours."""
    if Left.TRACEBACKS not in leaves:
        faults = list(own_tracebacks(server.lines))
        assert not faults, "a fault of our own:\n" + faults[0]
    if server.process.poll() is not None:
        return
    server.close_clients()
    deadline = time.monotonic() + PATIENCE
    while left := held(server, leaves):
        assert time.monotonic() < deadline, f"the server still holds {left}:\n{server.log}"
        time.sleep(0.02)


def held(server: Server, leaves: Left = Left.NOTHING) -> dict[str, object]:
    """What of the server is not at rest though nobody asks it anything."""
    headers = {"authorization": f"Bearer {server.token}"} if server.token else {}
    with httpx.Client(base_url=server.url, timeout=30, verify=False, headers=headers) as client:
        try:
            return {
                **(figures(client) if Left.REQUESTS not in leaves else {}),
                **(stuck_workers(client) if Left.REQUESTS not in leaves else {}),
            }
        except httpx.TransportError:
            # It was told to stop, and closes connections: it ends by itself, or its test fails for that.
            server.process.wait(PATIENCE)
            return {}


def figures(client: httpx.Client) -> dict[str, object]:
    """The gauges of what requests hold, those that are not zero."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, f"/metrics answered {answer.status_code}: {answer.text}"
    found: dict[str, object] = {}
    for line in answer.text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] in HELD and float(value):
            found[series] = float(value)
    return found


def stuck_workers(client: httpx.Client) -> dict[str, object]:
    """The workers that cannot go on. None where the token of `/metrics` does not suffice to look.

    Gauges do not show them: nobody waits for their calls any more. A script may go on with such a call, and so a worker
    that has calls is stuck only where its process waits for the front. It may do so in the midst of a call for another
    model, whose worker is busy then.
    """
    answer = client.get("/status.json")
    if answer.status_code in (401, 403):
        return {}
    assert answer.status_code == 200, f"/status.json answered {answer.status_code}: {answer.text}"
    workers = [worker for worker in answer.json()["workers"] if worker["pid"] and not worker["node"]]
    busy = [worker for worker in workers if worker["in_flight"]]
    stuck = busy if all(waits_for_the_front(worker["pid"]) for worker in busy) else []
    stuck += [worker for worker in workers if worker["state"] == "retiring" and not worker["in_flight"]]
    return {f"worker {each['pid']}": f"{each['state']}, has {each['in_flight']} calls and waits" for each in stuck}


def waits_for_the_front(pid: int) -> bool:
    """Whether the only thread of a worker's process waits at its end of the link, to read or to write.

    Of a process of several threads nobody knows which of them are at work.
    """
    process = Path("/proc", str(pid))
    try:
        arguments = (process / "cmdline").read_text().split("\0")
        (thread,) = (process / "task").iterdir()
        call = (thread / "syscall").read_text().split()
    except (OSError, ValueError):
        return False
    # The link and another descriptor are the last arguments of a worker, before an empty text.
    is_worker = len(arguments) > 3 and arguments[-4].endswith("/panglot_worker")
    number, first = (call[0], call[1]) if len(call) > 1 else ("", "0")
    return is_worker and number in SYSTEM_CALLS.get(platform.machine(), ()) and int(first, 16) == int(arguments[-3])


def own_tracebacks(lines: list[str]) -> Iterator[str]:
    """The tracebacks of a log that end in a file of ours.

    Where that file is the worker's, a script may have called it with something that it refuses: then a script is in the
    traceback. Without one the worker may refuse what a script has returned: then it raises the error itself.
    """
    for number, line in enumerate(lines):
        if BEGIN not in line:
            continue
        uncaught = bool(speaker(line))
        block = "\n".join(printed(lines[number:]) if uncaught else logged(lines[number:])).replace('\\"', '"')
        frames = list(FRAME.finditer(block))
        files = [frame[1] for frame in frames]
        # The last line of a printed block may not have been read yet.
        if not files or (uncaught and block.splitlines()[-1].startswith(" ")):
            continue
        end = block[frames[-1].end() :]
        blunder = BLUNDER.search(end) and not RAISED.search(end)
        is_workers = WORKER.search(files[-1]) and all(WORKER.search(file) or PYTHONS.search(file) for file in files)
        if FRONT.search(files[-1]) or (is_workers and blunder):
            yield block


def speaker(line: str) -> str:
    """The worker that printed this line; empty where the front wrote it itself."""
    found = SPOKEN.match(line)
    if found is not None:
        return found["speaker"]
    found = JSON_LINE.match(line)
    is_printed = found is not None and '"source": "script"' in line and '"traceback"' not in found["rest"]
    return found["rest"] if found is not None and is_printed else ""


def spoken(line: str) -> str:
    """What a worker printed in this line."""
    found = JSON_LINE.match(line)
    return found["message"] if found is not None else SPOKEN.sub("", line)


def printed(lines: list[str]) -> Iterator[str]:
    """The traceback at the beginning of these lines, which a worker printed; others may have written in between."""
    who = speaker(lines[0])
    own = (spoken(line) for line in lines if speaker(line) == who)
    yield next(own)
    for text in own:
        yield text
        if not text.startswith(" "):
            return


def logged(lines: list[str]) -> Iterator[str]:
    """The traceback at the beginning of these lines, which the front wrote with an indent, or in one line of JSON."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    yield lines[0].replace("\\n", "\n")
    for following in lines[1:] if JSON_LINE.match(lines[0]) is None else ():
        yield following
        if len(following) - len(following.lstrip()) <= margin:
            return
