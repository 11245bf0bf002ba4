"""Downloads what a job names, and says what is there; saves what a client names."""

import os

import runpod
from runpod.serverless.utils import download_files_from_urls, rp_download, upload_in_memory_object


def content(path):
    with open(path, "rb") as opened:
        return opened.read().decode("latin-1")


def found(folder):
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): content(path) for path in paths}


def handler(job):
    given = job["input"]
    if "saved" in given:
        return {"path": upload_in_memory_object(given["saved"], b"saved")}
    if "file" in given:
        told = rp_download.file(given["file"])
        return {**told, "files": found(told["extracted_path"]) if told["extracted_path"] else {}}
    paths = download_files_from_urls(job["id"], given["urls"])
    below = os.path.join(os.getcwd(), "jobs", job["id"], "downloaded_files")
    return {
        "contents": [content(path) if path else None for path in paths],
        "names": [os.path.relpath(path, below)[36:] if path else None for path in paths],
        "there": len(os.listdir(below)),
    }


runpod.serverless.start({"handler": handler})
