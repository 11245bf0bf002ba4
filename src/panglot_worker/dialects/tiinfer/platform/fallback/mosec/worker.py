"""One stage of a service."""

from __future__ import annotations

import abc
import json
import pickle
from typing import Any, List, Optional

from mosec.errors import DecodingError, EncodingError


class Worker(abc.ABC):
    """Override `forward`, and `deserialize` or `serialize` where the first or last stage does not speak JSON.

    The model is read in `__init__`. `example`, or each of `multi_examples`, is run once before the first request.
    """

    example: Any = None
    multi_examples: Optional[List[Any]] = None
    req_mime_type: str = "application/json"
    resp_mime_type: str = "application/json"

    _worker_id: int = 0
    _stage: str = ""
    _max_batch_size: int = 1

    def __init__(self) -> None:
        super().__init__()

    @property
    def worker_id(self) -> int:
        """The number of this process among those of its stage, from 1."""
        return self._worker_id

    @worker_id.setter
    def worker_id(self, worker_id: int) -> None:
        self._worker_id = worker_id

    @property
    def stage(self) -> str:
        return self._stage

    @stage.setter
    def stage(self, stage: str) -> None:
        self._stage = stage

    @property
    def max_batch_size(self) -> int:
        return self._max_batch_size

    @max_batch_size.setter
    def max_batch_size(self, max_batch_size: int) -> None:
        self._max_batch_size = max_batch_size

    @abc.abstractmethod
    def forward(self, data: Any) -> Any:
        """The work: one item in and out, or lists of equal length where the stage takes batches."""

    def deserialize(self, data: bytes) -> Any:
        """A request's body, for the first stage. Raises DecodingError."""
        try:
            return json.loads(data)
        except ValueError as error:
            raise DecodingError from error

    def serialize(self, data: Any) -> bytes:
        """The answer's body, for the last stage. Raises EncodingError."""
        try:
            return json.dumps(data, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise EncodingError from error

    def serialize_ipc(self, data: Any) -> bytes:
        """For a stage in another process; stages in one process hand over the object itself."""
        return pickle.dumps(data)

    def deserialize_ipc(self, data: bytes) -> Any:
        return pickle.loads(data)


class SSEWorker(Worker):
    """A last stage that answers in parts, as server-sent events."""

    resp_mime_type = "text/event-stream"

    def send_stream_event(self, text: str, index: int = 0) -> None:
        """Send a part to the request at this index of the batch. Raises RuntimeError while none is being served."""
        raise RuntimeError("send_stream_event works only while a request is being served")
