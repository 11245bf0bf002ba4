"""Whether memory stays flat while messages pass through a chain of ten nodes."""

from __future__ import annotations

import threading

import chain
import psutil

import megflow


def growth(messages: int = 100_000) -> tuple[int, int]:
    """Resident bytes after a tenth of the messages, and how much was added by the rest."""
    graph = megflow.Graph(config_str=chain.config())
    entrance, exit_ = graph.input("inp"), graph.output("out")

    def feed() -> None:
        for number in range(messages):
            entrance.send(megflow.Envelope.pack({"data": bytes(1000), "number": number}))

    threading.Thread(target=feed, daemon=True).start()
    process = psutil.Process()
    before = 0
    for number in range(messages):
        exit_.recv()
        if number == messages // 10:
            before = process.memory_info().rss
    after = process.memory_info().rss
    graph.wait()
    return before, after - before


if __name__ == "__main__":
    before, grown = growth()
    print(f"100,000 messages: {before / 1e6:.1f} MB after the first tenth, {grown / 1e6:+.1f} MB after the rest")
