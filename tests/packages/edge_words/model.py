"""Repeats, in every way a script can, what a stranger wrote."""

import os
import sys

from panglot import ClientError, File


def predict(request):
    words = request["words"]
    if isinstance(words, File):
        words = words.name
    how = request["how"]
    if how == "raise":
        raise RuntimeError(words)
    if how == "refuse":
        raise ClientError(words, status=422)
    if how == "print":
        print(words)
        print(words, file=sys.stderr)
        return "printed"
    if how == "die":
        print(words, flush=True)
        os._exit(3)
    if how == "type":
        return b"x", words
    if how == "class":
        raise type("Odd", (Exception,), {"__qualname__": words, "__module__": words})(words)
    return {words: words}
