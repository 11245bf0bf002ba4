"""A chain of pass-through nodes beside the same chain of threads and bare `queue.Queue`, in one interleaved run."""

from __future__ import annotations

import itertools
import queue
import statistics
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src" / "panglot_worker" / "dialects" / "megflow" / "platform" / "always"))

import megflow  # noqa: E402

NODES = 10
CAP = 64


@megflow.register(inputs=["inp"], outputs=["out"])
class Pass:
    def __init__(self, name, args):
        self.name = name

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            self.out.send(envelope)


def config(nodes: int = NODES, ty: str = "Pass", more: str = "") -> str:
    names = [f"n{number}" for number in range(nodes)]
    tables = "\n".join(f'[[graphs.nodes]]\nname = "{name}"\nty = "{ty}"\n{more}' for name in names)
    links = ",\n".join(
        f'{{ cap = {CAP}, ports = ["{one}:out", "{other}:inp"] }}' for one, other in itertools.pairwise(names)
    )
    return f"""
main = "chain"
[[graphs]]
name = "chain"
inputs = [{{ name = "inp", cap = {CAP}, ports = ["{names[0]}:inp"] }}]
outputs = [{{ name = "out", cap = {CAP}, ports = ["{names[-1]}:out"] }}]
connections = [{links}]
{tables}
"""


def graph_seconds(messages: int) -> float:
    """From the first message in to the last one out."""
    graph = megflow.Graph(config_str=config())
    entrance, exit_ = graph.input("inp"), graph.output("out")
    began = time.perf_counter()

    def feed() -> None:
        for number in range(messages):
            entrance.send(megflow.Envelope.pack(number))

    feeder = threading.Thread(target=feed)
    feeder.start()
    for number in range(messages):
        assert exit_.recv().msg == number
    seconds = time.perf_counter() - began
    feeder.join()
    graph.wait()
    return seconds


def bare_seconds(messages: int) -> float:
    """The same with threads and bounded queues of the standard library."""
    queues = [queue.Queue(CAP) for _ in range(NODES + 1)]

    def work(source: queue.Queue, target: queue.Queue) -> None:
        while True:
            item = source.get()
            target.put(item)
            if item is None:
                return

    for source, target in itertools.pairwise(queues):
        threading.Thread(target=work, args=(source, target), daemon=True).start()
    began = time.perf_counter()

    def feed() -> None:
        for number in range(messages):
            queues[0].put(number)

    feeder = threading.Thread(target=feed)
    feeder.start()
    for number in range(messages):
        assert queues[-1].get() == number
    seconds = time.perf_counter() - began
    feeder.join()
    queues[0].put(None)
    return seconds


def compare(messages: int = 10_000, rounds: int = 5) -> dict[str, float]:
    """Messages per second of both, and how the graph compares; interleaved, medians."""
    graph, bare = [], []
    for _ in range(rounds):
        graph.append(graph_seconds(messages))
        bare.append(bare_seconds(messages))
    ours, theirs = messages / statistics.median(graph), messages / statistics.median(bare)
    return {"graph": ours, "bare": theirs, "ratio": ours / theirs}


if __name__ == "__main__":
    found = compare()
    print(f"{NODES} nodes: graph {found['graph']:,.0f}/s, bare queues {found['bare']:,.0f}/s, {found['ratio']:.2f}")
