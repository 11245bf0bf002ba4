"""The envelope `json`: `{"instances": [...]}` of all requests in one list, as TensorFlow Serving has it."""

import base64
import json

from ts.torch_handler.request_envelope.base import BaseEnvelope


class JSONEnvelope(BaseEnvelope):
    """Answers with `{"predictions": [...]}`, a text for each request."""

    _lengths = ()

    def parse_input(self, data):
        rows = [(row.get("data") or row.get("body") or row)["instances"] for row in data]
        if not all(rows):
            raise IndexError("a request has no instances")
        self._lengths = [len(instances) for instances in rows]
        return [_decoded(instance) for instances in rows for instance in instances]

    def format_output(self, data):
        outputs, start = [], 0
        for length in self._lengths:
            outputs.append(json.dumps({"predictions": data[start : start + length]}))
            start += length
        return outputs


def _decoded(instance):
    """An instance with the bytes of every `{"b64": "..."}`."""
    if not isinstance(instance, dict):
        return instance
    if list(instance) == ["b64"]:
        return base64.b64decode(instance["b64"])
    return {
        name: base64.b64decode(value["b64"]) if isinstance(value, dict) and list(value) == ["b64"] else value
        for name, value in instance.items()
    }
