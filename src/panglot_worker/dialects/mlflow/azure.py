"""Requests of Azure ML's endpoints for MLflow models without a script: the input is at `input_data`."""

from __future__ import annotations

from typing import Any, Dict

from panglot_worker.errors import ClientError

INPUT = "input_data"
SPLIT_KEYS = frozenset(("columns", "index", "data"))


def rewritten(value: Any) -> Dict[str, Any]:
    """The request of mlflow's own server with the same input. Raises ClientError."""
    if not isinstance(value, dict) or INPUT not in value:
        raise ClientError("the body must be a JSON object with the key %s" % INPUT)
    data = value[INPUT]
    is_table = isinstance(data, dict) and "data" in data and SPLIT_KEYS.issuperset(data)
    request: Dict[str, Any] = {"dataframe_split" if is_table else "inputs": data}
    if "params" in value:
        request["params"] = value["params"]
    return request
