"""Parameters of a request that Triton reserves: a model reads them by methods of its request."""

from __future__ import annotations

from typing import Any, Dict

from panglot_worker.errors import ClientError

STARTS, ENDS = 1, 2
NOT_PASSED = ("binary_data_output", "priority")


def request_arguments(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments for a model's request: one for each reserved parameter, and the client's other parameters.

    Raises ClientError for values that the reserved ones cannot have.
    """
    own = {name: value for name, value in parameters.items() if name not in NOT_PASSED}
    if not own:
        return {}
    flags = STARTS * bool(own.pop("sequence_start", False)) | ENDS * bool(own.pop("sequence_end", False))
    sequence, timeout = own.pop("sequence_id", 0), own.pop("timeout", 0)
    if not isinstance(sequence, (int, str)) or isinstance(sequence, bool):
        raise ClientError("the parameter 'sequence_id' is a number or a text, not %.60r" % (sequence,))
    if not isinstance(timeout, int):
        raise ClientError("the parameter 'timeout' is a whole number of microseconds, not %.60r" % (timeout,))
    return {"correlation_id": sequence, "flags": flags, "timeout": timeout, "parameters": own}
