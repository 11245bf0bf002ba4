"""Yields words, and tells on the way what it does: on both streams, and in figures."""

import sys
import time

import cog
from cog import BaseRunner, ConcatenateIterator, Input


class Runner(BaseRunner):
    @cog.streaming()
    def run(self, prompt: str = Input(description="the words"), pause: float = 0.0) -> ConcatenateIterator[str]:
        """Yield the words of a prompt, and count them."""
        print("begins", self.scope.context.get("who", ""))
        for number, word in enumerate(prompt.split()):
            print("word %d" % number, file=sys.stderr if number % 2 else sys.stdout)
            self.record_metric("words", 1, mode="incr")
            self.record_metric("told.lengths", len(word), mode="append")
            self.record_metric("told.last", word)
            time.sleep(pause)
            if word == "raise":
                raise RuntimeError("no more words")
            yield word + " "
        print("ends", end="" if pause else "\n")
