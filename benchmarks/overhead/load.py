"""Load by wrk, and the bodies it sends."""

from __future__ import annotations

import json
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("post.lua")
OCTETS = "application/octet-stream"
LENGTHS = {"50 kB": 50_000, "150 kB": 150_000, "1 MB": 1_000_000}
"""Bodies that are received and answered by their length: what pictures and tensors cost on their way in."""
MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


class LoadError(Exception):
    """wrk could not run or said something unexpected."""


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    body: bytes
    content_type: str

    answer: bytes = b""
    """What the right answer is, where it is not the body again."""
    field: str = ""
    """The field of the answer that has the echo, where other fields have numbers too."""

    def echoed(self, answer: bytes) -> bool:
        """Is this the right answer?"""
        if self.answer:
            return answer == self.answer
        if self.content_type != "application/json":
            return answer == self.body
        try:
            told = json.loads(answer)
            return numbers(told[self.field] if self.field else told) == numbers(json.loads(self.body))
        except (ValueError, KeyError):
            return False


@dataclass(frozen=True)
class Load:
    """What wrk saw."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    non_2xx: int
    socket_errors: int


def numbers(value: Any) -> list[float]:
    """The floats in an answer, wherever they are."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [value] if isinstance(value, float) else []


def scenarios() -> dict[str, Scenario]:
    """The same bodies in every run."""
    source = random.Random(64)
    floats = json.dumps([round(source.uniform(-1.0, 1.0), 6) for _ in range(64)]).encode()
    json_body = Scenario("json", "64 floats as JSON", floats, "application/json")
    inputs = Scenario("inputs", "64 floats as `inputs`", b'{"inputs": %b}' % floats, "application/json")
    values = b'{"input": {"values": %b}}' % floats
    given = Scenario("input", "64 floats as `input`", values, "application/json", field="output")
    # Numbers that are the same in 32 bits.
    halves = [index / 64 - 0.3125 for index in range(64)]
    listed = Scenario("listed", "64 floats in a list", json.dumps({"items": [halves]}).encode(), "application/json")
    tensor = {"name": "x", "shape": [1, 64], "datatype": "FP32", "data": halves}
    tensors = Scenario("tensor", "64 floats as a tensor", json.dumps({"inputs": [tensor]}).encode(), "application/json")
    raw_body = Scenario("raw", "150 kB raw body", source.randbytes(150_000), OCTETS)
    lengths = [
        Scenario(
            f"length-{title}", f"{title} body, answered by its length", source.randbytes(size), OCTETS, b"%d" % size
        )
        for title, size in LENGTHS.items()
    ]
    return {scenario.name: scenario for scenario in (json_body, inputs, given, listed, tensors, raw_body, *lengths)}


def run_wrk(
    url: str,
    body: Path,
    content_type: str,
    connections: int,
    seconds: int,
    threads: int = 1,
    *,
    secret: str = "",
    close: bool = False,
) -> Load:
    """One bounded run of wrk; with `close`, each request on a connection of its own. Raises LoadError."""
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(SCRIPT), url]
    command += ["--", str(body), content_type, secret or "-", *(["close"] if close else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 20)
    except subprocess.TimeoutExpired:
        raise LoadError(f"wrk did not end within {seconds + 20} s") from None
    if done.returncode:
        raise LoadError(f"wrk ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return parse(done.stdout)


def parse(text: str) -> Load:
    """The report of `wrk --latency`. Raises LoadError when a figure is missing."""
    total = re.search(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m),", text, re.MULTILINE)
    p50 = re.search(r"^\s*50%\s+([\d.]+)(us|ms|s|m)\s*$", text, re.MULTILINE)
    p99 = re.search(r"^\s*99%\s+([\d.]+)(us|ms|s|m)\s*$", text, re.MULTILINE)
    if not (total and p50 and p99):
        raise LoadError(f"cannot read the report of wrk:\n{text}")
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    return Load(
        requests=int(total[1]),
        seconds=float(total[2]) * MILLISECONDS[total[3]] / 1e3,
        p50_ms=float(p50[1]) * MILLISECONDS[p50[2]],
        p99_ms=float(p99[1]) * MILLISECONDS[p99[2]],
        non_2xx=int(failed[1]) if failed else 0,
        socket_errors=sum(map(int, sockets.groups())) if sockets else 0,
    )
