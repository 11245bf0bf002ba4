"""Streams the words of a prompt, as workers with language models do."""

import time

from runpod.serverless import start


def words(job):
    """Yield the words of `prompt`, one by one."""
    job_input = job["input"]
    for number, word in enumerate(job_input.get("prompt", "").split()):
        if word == "raise":
            raise RuntimeError("no more words")
        if word == "fail":
            yield {"error": "this word fails"}
        time.sleep(job_input.get("pause", 0))
        yield {"word": word, "number": number}


start({"handler": words, "return_aggregate_stream": True})
