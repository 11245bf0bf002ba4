"""A worker that is replaced after each job."""

import os

import runpod

jobs = []


def handler(job):
    jobs.append(job["id"])
    return {"jobs": len(jobs), "pid": os.getpid()}


runpod.serverless.start({"handler": handler, "refresh_worker": True})
