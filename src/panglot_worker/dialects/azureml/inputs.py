"""The input of `run()`: the text of a request's body, or one value for each parameter."""

from __future__ import annotations

import inspect
import json
import urllib.parse
from typing import Any, Dict, Sequence

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.azureml.incoming import Refused, media_of
from panglot_worker.errors import ClientError
from panglot_worker.line import wire

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


def text_of(content_type: str, body: wire.Buffer) -> str:
    """The body as text. Raises Refused where it is not UTF-8.

    A form leaves nothing: the platform's web framework has read the body as a form by then.
    """
    if content_type and content_type != JSON and is_form(content_type):
        return ""
    try:
        return str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise Refused("Input cannot be decoded as UTF-8: %s" % error) from None


def is_form(content_type: str) -> bool:
    """Whether the platform reads a body of this type as a form: a multipart one needs a boundary."""
    media, parameters = media_of(content_type)
    return media == URLENCODED or (media == MULTIPART and "boundary=" in parameters.lower())


def query_values(query: bytes) -> Dict[str, Any]:
    """The values of a query by name, each as JSON where it is JSON, else as text; of several with one name a list."""
    values: Dict[str, Any] = {}
    pairs = urllib.parse.parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    for name, text in pairs:
        values.setdefault(name, []).append(_value(text))
    return {name: listed[0] if len(listed) == 1 else listed for name, listed in values.items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def object_of(content_type: str, body: wire.Buffer, limits: Limits) -> Dict[str, Any]:
    """The JSON object of a body. Raises Refused."""
    if content_type != JSON:
        media = media_of(content_type)[0]
        if media != JSON and not (media.startswith("application/") and media.endswith("+json")):
            raise Refused("Expects Content-Type to be application/json", 415)
    if not len(body):
        raise Refused("POST body is empty. Expecting a JSON dictionary.")
    if len(body) > limits.json_bytes:
        raise Refused("the JSON body is larger than max_json, %d bytes" % limits.json_bytes, 413)
    try:
        value = jsontext.loads(body, limits.json_depth)
    except ClientError as error:
        raise Refused("POST body could not be decoded as JSON: %s" % _why(body, error)) from None
    if not isinstance(value, dict):
        raise Refused("POST body should be a JSON dictionary.")
    return value


def _why(body: wire.Buffer, error: ClientError) -> str:
    """The platform's own message about a malformed text; ours where the platform takes the text: NaN, deep nesting."""
    try:
        json.loads(bytes(body))
    except json.JSONDecodeError as theirs:
        return str(theirs)
    except (ValueError, RecursionError):
        pass
    return error.message


def arguments_of(values: Dict[str, Any], parameters: Sequence[inspect.Parameter]) -> Dict[str, Any]:
    """One value for each parameter, or its default; others are ignored. Raises Refused where one is missing."""
    arguments: Dict[str, Any] = {}
    for parameter in parameters:
        value = values.get(parameter.name, parameter.default)
        if value is inspect.Parameter.empty:
            raise Refused("A value is not provided for the %r parameter." % parameter.name)
        arguments[parameter.name] = value
    return arguments
