"""Yields the words of a prompt, as language models on Replicate do."""

import time

import cog
from cog import BaseRunner, ConcatenateIterator, Input


class Runner(BaseRunner):
    @cog.streaming
    def run(self, prompt: str = Input(description="the words"), pause: float = 0.0) -> ConcatenateIterator[str]:
        """Yield the words of a prompt."""
        for word in prompt.split():
            if word == "raise":
                raise RuntimeError("no more words")
            time.sleep(pause)
            yield word + " "
