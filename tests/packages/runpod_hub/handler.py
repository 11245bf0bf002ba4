"""A worker for tests by hand, which the image does not run."""

import runpod


def handler(job):
    return "the wrong one"


runpod.serverless.start({"handler": handler})
