"""Handlers of the TensorFlow Serving container."""

import json


def input_handler(data, context):
    if context.request_content_type == "text/csv":
        rows = [[float(cell) for cell in line.split(",")] for line in data.read().decode().splitlines()]
        return json.dumps({"instances": rows})
    if context.request_content_type == "application/json":
        return data.read().decode("utf-8")
    raise ValueError("unsupported content type " + str(context.request_content_type))


def output_handler(response, context):
    if response.status_code != 200:
        raise ValueError(response.content.decode("utf-8"))
    return response.content, context.accept_header
