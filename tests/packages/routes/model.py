"""Three routes of one model."""

import os
import time

from panglot import route


class Model:
    def predict(self, request):
        return {"predicted": request, "pid": os.getpid()}

    @route("/embed", batch=4)
    def embed(self, texts: list[str]) -> list[list[int]]:
        """Numbers for a text."""
        if any(text == "kill" for text in texts):
            os._exit(1)
        time.sleep(0.05)
        return [[len(texts), len(text), os.getpid()] for text in texts]

    @route("/words")
    def words(self, request: str):
        """The words of a text, one after the other."""
        yield from request.split()

    def labels(self, request):
        return ["cat", "dog"]
