"""Asynchronous inference: a request of boto3's `invoke_endpoint_async` becomes a job."""

from __future__ import annotations

import json

from panglot.engine.call import Fault
from panglot.web.contract import InferRoute, ModelName, RouteRefused
from panglot.web.job_contract import JobOptions, JobRequest, JobRoute, JobState, PlatformAnswer
from panglot.web.jobs.views import own_of

PATH = "/endpoints/{endpoint}/async-invocations"
TARGET = "/async-invocations"
"""The route that the worker gets. On this route, other headers have the type of the input and of the answer."""
PREFIX = "x-amzn-sagemaker-"
LOCATION = PREFIX + "inputlocation"
ADDRESSES = ("https://", "http://")
LONGEST_WAIT, LONGEST_RUN = 21600, 3600
NO_S3 = "there is no S3 here: give InputLocation a presigned https address of the object, or send the input as the body"


def options(request: JobRequest) -> JobOptions:
    """How a request becomes a job, by its headers. Raises RouteRefused."""
    location = request.headers.get(LOCATION, "")
    if location and not location.lower().startswith(ADDRESSES):
        raise RouteRefused(Fault(400, "bad_request", NO_S3))
    return JobOptions(
        lifetime=_seconds(request, "requestttlseconds", LONGEST_WAIT),
        run_timeout=_seconds(request, "invocationtimeoutseconds", LONGEST_RUN) or 0.0,
        own={"inference_id": request.headers.get(PREFIX + "inference-id", "")},
    )


def _seconds(request: JobRequest, name: str, most: int) -> float | None:
    text = request.headers.get(PREFIX + name, "")
    if not text:
        return None
    # Not `int`: Python refuses to read very long numbers.
    if not text.isdecimal() or not 1 <= float(text) <= most:
        message = f"X-Amzn-SageMaker-{name} must be a whole number from 1 to {most}"
        raise RouteRefused(Fault(400, "bad_request", message))
    return float(text)


def accepted(state: JobState) -> PlatformAnswer:
    """The place of the answer, or of the failure: a path of this server, where the platform names an object of S3."""
    job = state.job
    where = f"/jobs/{job.id}/result".encode()
    body = json.dumps({"InferenceId": own_of(job).get("inference_id") or job.id}).encode()
    lines = (b"x-amzn-sagemaker-outputlocation: " + where, b"x-amzn-sagemaker-failurelocation: " + where)
    return PlatformAnswer(202, b"application/json", body, lines)


def route(model: ModelName) -> InferRoute:
    job = JobRoute(always=True, options=options, accepted=accepted)
    return InferRoute(PATH, PATH, target=TARGET, model=model, whole_head=True, job=job)
