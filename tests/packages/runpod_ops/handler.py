"""Does what its input says: one handler for all that a result can be."""

import os
import time

import runpod

log = runpod.RunPodLogger()


def handler(job):
    job_input = job["input"]
    op = job_input.get("op", "echo") if isinstance(job_input, dict) else "echo"
    log.info("job of %s" % op, job["id"])
    if op == "echo":
        return {"got": job_input}
    if op == "text":
        return "x"
    if op == "keys":
        return {"job": {name: value for name, value in job.items()}}
    if op == "error":
        return {"error": "bad", "a": 1}
    if op == "empty_error":
        return {"error": "", "a": 1}
    if op == "errors":
        return {"error": ["p is a required input."]}
    if op == "nothing":
        return {}
    if op == "none":
        return None
    if op == "output":
        return {"output": 1}
    if op == "raise":
        raise ValueError("no")
    if op == "die":
        os._exit(1)
    if op == "refresh":
        return {"refresh_worker": True, "pid": os.getpid()}
    if op == "pid":
        return os.getpid()
    if op == "strange":
        return {"value": object()}
    if op == "progress":
        for step in range(int(job_input["steps"])):
            runpod.serverless.progress_update(job, "step %d" % step)
            time.sleep(0.2)
        return "done"
    if op == "sleep":
        time.sleep(job_input["seconds"])
        return "slept"
    if op == "large":
        return "x" * int(job_input["size"])
    return {"error": "there is no %s" % op}


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
    raise RuntimeError("start() never comes back on the platform")
