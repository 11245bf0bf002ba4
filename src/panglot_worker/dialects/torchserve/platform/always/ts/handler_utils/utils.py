"""Answers in parts."""

import importlib


def send_intermediate_predict_response(ret, req_id_map, message, code, context=None):
    """Send a part of the answer of each request; what `handle` returns is the last part."""
    context.cl_socket.send_parts(ret, req_id_map)


def import_class(class_name, module_prefix=None):
    """A class by its dotted name."""
    module, _, name = class_name.rpartition(".")
    return getattr(importlib.import_module(".".join(part for part in (module_prefix, module) if part)), name)
