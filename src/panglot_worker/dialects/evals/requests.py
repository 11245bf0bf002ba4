"""Reads bodies: one request, a group of pictures that is one request, or a list of requests of either kind."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

from panglot_worker.bodies import jsontext, multipart
from panglot_worker.bodies.multipart import Body, Limits
from panglot_worker.dialects.evals.failures import BAD_TASK, OUT_OF_BATCH_SIZE, WRONG_TYPE, Failed
from panglot_worker.errors import ClientError

JSON, FORM, OCTETS = "application/json", "multipart/form-data", "application/octet-stream"
SINGLE, GROUP, BATCH = "single", "group", "batch"


class Task(NamedTuple):
    """The work of one HTTP request. `reqs` are the dicts for the script, one unless `kind` is BATCH."""

    kind: str
    reqs: List[Dict[str, Any]]
    files: Mapping[str, bytes] = {}
    """The pictures by the names they have as `uri`, for scripts that look at files."""


def parse(route: str, content_type: str, body: Body, limits: Limits) -> Task:
    """The task, with the URIs in it still to be loaded. Raises Failed, and ClientError beyond a limit."""
    if route == "/v1/batch":
        return _batch(_json(content_type, body, limits))
    media = content_type.partition(";")[0].strip().lower()
    if media == OCTETS:
        return Task(SINGLE, [_req(_data(body=bytes(body)), None)])
    if media == FORM:
        return _form(content_type, body, limits)
    return _task(_json(content_type, body, limits))


def pictures_of(req: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The pictures of a request: those of a group, or the only one."""
    data = req["data"]
    return data if isinstance(data, list) else [data]


def sources(task: Task) -> Iterator[Dict[str, Any]]:
    """Every picture of a task that is named by a URI."""
    return (entry for req in task.reqs for entry in pictures_of(req) if entry["uri"])


def check_size(task: Task, batch_size: int) -> None:
    """Raises Failed when a request has more pictures than the configuration allows."""
    if any(len(pictures_of(req)) > batch_size for req in task.reqs):
        raise Failed(400, OUT_OF_BATCH_SIZE % batch_size)


def _json(content_type: str, body: Body, limits: Limits) -> Any:
    try:
        media, parameters = multipart.parse_header(content_type or "-")
    except ClientError:
        raise Failed(400, WRONG_TYPE) from None
    if media != JSON or parameters.get("charset", "utf-8").lower() != "utf-8":
        raise Failed(400, WRONG_TYPE)
    if len(body) > limits.json_bytes:
        raise ClientError("the JSON body is larger than max_json, %d bytes" % limits.json_bytes, 413)
    try:
        return jsontext.loads(body, limits.json_depth)
    except ClientError:
        raise Failed(400, BAD_TASK) from None


def _batch(value: Any) -> Task:
    if not isinstance(value, list):
        raise Failed(400, BAD_TASK)
    tasks = [_task(entry) for entry in value]
    if len({task.kind for task in tasks}) > 1:
        raise Failed(400, BAD_TASK)
    return Task(BATCH, [task.reqs[0] for task in tasks])


def _task(value: Any) -> Task:
    """One object of the platform. Raises Failed where the platform could not read it."""
    if not isinstance(value, dict):
        raise Failed(400, BAD_TASK)
    data = value.get("data")
    if isinstance(data, dict):
        return Task(SINGLE, [_req(_entry(data), value.get("params"))])
    if isinstance(data, list) and data:
        return Task(GROUP, [_req([_entry(entry) for entry in data], value.get("params"))])
    raise Failed(400, BAD_TASK)


def _req(data: Any, params: Any) -> Dict[str, Any]:
    return {"data": data} if params is None else {"data": data, "params": params}


def _data(uri: str = "", body: bytes = b"", attribute: Any = None) -> Dict[str, Any]:
    return {"uri": uri, "body": body, "attribute": {} if attribute is None else attribute}


def _entry(data: Any) -> Dict[str, Any]:
    """One picture: bytes in `body`, in base64, or else a `uri`."""
    if not isinstance(data, dict):
        raise Failed(400, BAD_TASK)
    uri, body = data.get("uri"), data.get("body")
    # The document of the platform misspells it.
    attribute = data.get("attribute", data.get("atrribute"))
    if body is not None:
        return _data(body=_inline(body), attribute=attribute)
    if not isinstance(uri, str) or not uri:
        raise Failed(400, BAD_TASK)
    return _data(uri, attribute=attribute)


def _inline(text: Any) -> bytes:
    if not isinstance(text, str):
        raise Failed(400, BAD_TASK)
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise Failed(400, "body is not base64") from None


def _form(content_type: str, body: Body, limits: Limits) -> Task:
    """An upload: every file is a picture; the fields `params` and `attribute` are JSON."""
    try:
        parts = multipart.parse(content_type, body, limits)
    except ClientError as error:
        raise Failed(error.status, error.message) from None
    fields: Dict[str, Any] = {}
    for part in parts:
        if part.filename is None:
            if part.name not in ("params", "attribute", "atrribute"):
                raise Failed(400, "a form has files and the fields params and attribute, not %s" % part.name)
            try:
                fields[part.name] = jsontext.loads(part.data, limits.json_depth)
            except ClientError as error:
                raise Failed(400, "the field %s is not JSON: %s" % (part.name, error.message)) from None
    attribute = fields.get("attribute", fields.get("atrribute"))
    files = [_data(body=bytes(part.data), attribute=attribute) for part in parts if part.filename is not None]
    if not files:
        raise Failed(400, BAD_TASK)
    if len(files) == 1:
        return Task(SINGLE, [_req(files[0], fields.get("params"))])
    return Task(GROUP, [_req(files, fields.get("params"))])
