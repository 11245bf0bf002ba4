"""One function for everything, with the context."""

import json


def model_fn(model_dir, context=None):
    return {"has_context": context is not None, "request": context.request_processor}


def transform_fn(model, input_data, content_type, accept, context):
    if input_data == "raise":
        raise RuntimeError("no\nway")
    kind = type(input_data).__name__
    length = context.get_request_header(0, "content-length")
    return json.dumps([model["has_context"], kind, content_type, accept, length]), "application/json"
