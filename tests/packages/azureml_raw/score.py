"""A script that takes the HTTP request itself, by the names of the first SDK."""

import json

from azureml.contrib.services.aml_request import AMLRequest, rawhttp
from azureml.contrib.services.aml_response import AMLResponse


def init():
    print("Initializing")


@rawhttp
def run(request: AMLRequest):
    print("This is run()")
    if request.method == "GET":
        return AMLResponse(str.encode(request.full_path), 200)
    if request.method == "OPTIONS":
        return AMLResponse("asked", 200, {"Allow": "GET, POST"})
    if request.files:
        uploads = request.files.getlist("file[]") or list(request.files.values())
        sizes = [{"name": upload.filename, "type": upload.mimetype, "size": len(upload.read())} for upload in uploads]
        return {"files": sizes, "form": request.form.to_dict()}
    if request.mimetype == "application/x-www-form-urlencoded":
        return {"form": request.form.to_dict(), "data": request.data.decode()}
    if request.is_json:
        if not request.json:
            return AMLResponse("bad request", 500)
        return {"json": request.get_json(), "agent": "User-Agent" in request.headers, "path": request.path}
    if request.content_type == "text/event-stream":
        return AMLResponse((f"data: {n}\n\n" for n in range(3)), 200, {"Content-Type": "text/event-stream"})
    body = request.get_data(False)
    return AMLResponse(body[::-1], 200, {"Content-Type": "image/jpeg", "X-Length": json.dumps(len(body))})
