"""One order in a job."""

import acts

import runpod

acts.load()


def handler(job):
    return acts.act(job["input"])


runpod.serverless.start({"handler": handler})
