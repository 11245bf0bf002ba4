"""Makes a picture of a prompt, in the manner of public workers: validator, timers, upload, cleanup."""

import os

import runpod
from runpod.serverless.utils import rp_cleanup, rp_debugger, upload_in_memory_object
from runpod.serverless.utils.rp_upload import upload_image
from runpod.serverless.utils.rp_validator import validate
from schemas import INPUT_SCHEMA


@rp_debugger.FunctionTimer
def paint(prompt):
    path = os.path.join("output_objects", "picture.png")
    os.makedirs("output_objects", exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x89PNG" + prompt.encode())
    return path


def run(job):
    validated = validate(job["input"], INPUT_SCHEMA)
    if "errors" in validated:
        return {"error": validated["errors"]}
    given = validated["validated_input"]
    picture = upload_image(job["id"], paint(given["prompt"]))
    text = upload_in_memory_object("prompt.txt", given["prompt"].encode())
    result = {"picture": picture, "text": text, "input": given, "is_there": os.path.exists(picture)}
    rp_cleanup.clean(["simulated_uploaded", "local_upload"])
    return result


runpod.serverless.start({"handler": run})
