"""A config.pbtxt for each field that NVIDIA's own description of it has, as JSON. Runs in an environment of its own."""

import json

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2


def ways(kind, above=(), seen=()):
    """The fields of a message, and of those in it, as the fields that lead there."""
    for field in kind.fields:
        yield (*above, field)
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            yield from ways(inner, (*above, field), (*seen, inner.full_name))


def value(field):
    if field.message_type:
        return " { }"
    if field.enum_type:
        return f": {field.enum_type.values[-1].name}"
    return {field.CPPTYPE_STRING: ': "x"', field.CPPTYPE_BOOL: ": true"}.get(field.cpp_type, ": 1")


written = {}
for way in ways(model_config_pb2.ModelConfig.DESCRIPTOR):
    names = [field.name for field in way]
    written[".".join(names)] = text = f"{' { '.join(names)}{value(way[-1])}{' }' * (len(way) - 1)}"
    text_format.Parse(text, model_config_pb2.ModelConfig())
print(json.dumps(written))
