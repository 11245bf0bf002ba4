"""Gives back what it gets: tensors by name, or what it was told otherwise."""

import time


def predict(request):
    if not isinstance(request, dict):
        return {"kind": type(request).__name__, "size": len(request)}
    if "fail" in request:
        raise ValueError("as it was told")
    if "sleep" in request:
        time.sleep(float(request["sleep"][0]))
    if "kinds" in request:
        return {name: f"{type(value).__name__} {getattr(value, 'dtype', '')}" for name, value in request.items()}
    if "nan" in request:
        return {"nan": [float("nan"), 1.0]}
    return request
