"""Parameters of a request that Triton reserves: a model reads them by methods of its request."""

from __future__ import annotations

from typing import Any, Dict

STARTS, ENDS = 1, 2
NOT_PASSED = ("binary_data_output", "priority")


def request_arguments(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments for a model's request: one for each reserved parameter, and the client's other parameters."""
    own = {name: value for name, value in parameters.items() if name not in NOT_PASSED}
    flags = STARTS * bool(own.pop("sequence_start", False)) | ENDS * bool(own.pop("sequence_end", False))
    sequence, timeout = own.pop("sequence_id", 0), own.pop("timeout", 0)
    return {"correlation_id": sequence, "flags": flags, "timeout": timeout, "parameters": own}
