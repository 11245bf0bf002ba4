"""Three nodes that each wait 5 ms: as a pipeline they pass 200 messages a second, one after the other 67."""

from __future__ import annotations

import threading
import time

import chain

import megflow


@megflow.register(inputs=["inp"], outputs=["out"])
class Waits:
    def __init__(self, name, args):
        self.ms = args["ms"]

    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            megflow.sleep(self.ms)
            self.out.send(envelope)


def bare_rate(messages: int) -> float:
    """What the machine makes of 5 ms: the ceiling of any such pipeline."""
    began = time.perf_counter()
    for _ in range(messages):
        time.sleep(0.005)
    return messages / (time.perf_counter() - began)


def rate(messages: int = 200) -> float:
    """Messages per second through the three nodes."""
    graph = megflow.Graph(config_str=chain.config(3, "Waits", "ms = 5\n"))
    entrance, exit_ = graph.input("inp"), graph.output("out")

    def feed() -> None:
        for number in range(messages):
            entrance.send(megflow.Envelope.pack(number))

    began = time.perf_counter()
    threading.Thread(target=feed, daemon=True).start()
    for _ in range(messages):
        exit_.recv()
    found = messages / (time.perf_counter() - began)
    graph.wait()
    return found


if __name__ == "__main__":
    found, ceiling = rate(), bare_rate(200)
    print(f"three nodes of 5 ms: {found:.0f} messages/s; one such wait alone {ceiling:.0f}/s; {found / 200:.0%} of 200")
