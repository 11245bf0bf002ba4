"""What a model gets for a request: a value of JSON or msgpack, or an object of the model of pydantic that it wants."""

from __future__ import annotations

import json
from typing import Any, Optional

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.base import Request
from panglot_worker.dialects.truss import binary, schema
from panglot_worker.dialects.truss.schema import Schema
from panglot_worker.errors import ClientError
from panglot_worker.line import wire

ASYNC = b"/async_predict"
"""The route of asynchronous inference, as the front half names it."""
OCTETS = "application/octet-stream"


class Refused(ClientError):
    """A body that cannot be read, with the platform's sentence."""


def is_binary(content_type: str) -> bool:
    """Whether a body is msgpack, and its answer too. All others are JSON, whatever their type says."""
    if content_type == "application/json":
        return False
    return content_type.partition(";")[0].strip().lower() == OCTETS


class Reader:
    """Reads bodies."""

    def __init__(self, limits: Limits, wanted: Optional[Schema]) -> None:
        self.limits = limits
        kind = wanted.input if wanted is not None else None
        self.validate = schema.validator(kind) if kind is not None else None

    def read(self, request: Request) -> Any:
        """The inputs of a request. Raises Refused."""
        value = self._binary(request.body) if is_binary(request.content_type) else self._json(request.body)
        if request.route == ASYNC:
            # The front has seen that the field is there.
            value = value["model_input"]
        if self.validate is None:
            return value
        try:
            return self.validate(value)
        except Exception as error:
            if not schema.is_validation_error(error):
                raise
            raise Refused(schema.explained(error)) from None

    def _binary(self, body: wire.Buffer) -> Any:
        try:
            return binary.loads(bytes(body))
        except ImportError as error:
            raise Refused("arrays in a body need %s in the script's environment" % error.name) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Refused(str(error)) from None

    def _json(self, body: wire.Buffer) -> Any:
        if len(body) > self.limits.json_bytes:
            raise Refused("the JSON body is larger than max_json, %d bytes" % self.limits.json_bytes, 413)
        try:
            return jsontext.loads(body, self.limits.json_depth)
        except ClientError as error:
            why = _why(body, error)
        if self.validate is not None:
            raise Refused("Input Parsing Error:\n  `__root__`: %s." % why)
        raise Refused("Invalid JSON payload: %s" % why)


def _why(body: wire.Buffer, error: ClientError) -> str:
    """The platform's sentence about a text that is no JSON; our own where the platform takes it: NaN, deep nesting."""
    try:
        json.loads(bytes(body))
    except json.JSONDecodeError as theirs:
        return str(theirs)
    except (ValueError, RecursionError):
        pass
    return error.message
