"""Says whether a sentence is friendly: a worker of RunPod in one small file.

The script runs once in every process, up to `start`; then the handler is called for every job. Put your own model where
the word list is:

- The handler gets the job: `job["input"]` is what the client has sent, `job["id"]` what names the job.
- What it returns is the output. A dict with `error` fails the job, and so does an exception.
- A generator yields parts, which clients read at `/stream`; `async def` works too.
- `runpod.serverless.progress_update(job, "text")` tells clients how far the job is.
"""

import json
import math
import pathlib
import re

import runpod

WEIGHTS = json.loads(pathlib.Path(__file__).with_name("words.json").read_text())


def handler(job):
    words = re.findall(r"\w+", job["input"]["text"].lower())
    score = 1 / (1 + math.exp(-sum(WEIGHTS.get(word, 0.0) for word in words)))
    return {"label": "friendly" if score >= 0.5 else "unfriendly", "score": round(score, 4)}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
