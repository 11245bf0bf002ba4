"""The context of Multi Model Server and its successors, as handlers get it: the model, the requests, their answers."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

SERVER_NAME, SERVER_VERSION = "MMS", "0.12.0"
"""The name and version that the original gives; scripts print them, and some compare them."""


class RequestHeaders(Dict[str, Any]):
    """The headers of a request by name, and entries that the server adds; names are found in any case.

    The originals have a plain dict with the names as the client wrote them. Scripts that ask for `Content-Type` and
    scripts that ask for `content-type` both find it here.
    """

    def __missing__(self, name: str) -> Any:
        return super().__getitem__(self._spelled(name))

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        return isinstance(name, str) and any(name.lower() == key.lower() for key in self)

    def _spelled(self, name: str) -> str:
        """The name as it is here. Raises KeyError."""
        wanted = name.lower() if isinstance(name, str) else ""
        for key in self:
            if key.lower() == wanted:
                return key
        raise KeyError(name)


def header_pairs(lines: bytes) -> Iterator[Tuple[str, str]]:
    """The headers of `wire.Head.headers`, with the names as clients of HTTP/1.1 write them: `Content-Type`."""
    for line in lines.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            yield "-".join(map(str.capitalize, name.decode("latin-1").split("-"))), value.strip().decode("latin-1")


class RequestProcessor:
    """One request of a batch as scripts see it, with the status and headers that they choose for its answer."""

    def __init__(self, request_header: Dict[str, Any]) -> None:
        self._status_code = 200
        self._reason_phrase: Optional[str] = None
        self._response_header: Dict[str, str] = {}
        self._request_header = request_header

    def get_request_property(self, key: str) -> Any:
        return self._request_header.get(key)

    def get_request_properties(self) -> Dict[str, Any]:
        return self._request_header

    def report_status(self, code: int, reason_phrase: Optional[str] = None) -> None:
        self._status_code = code
        self._reason_phrase = reason_phrase

    def get_response_status_code(self) -> int:
        return self._status_code

    def get_response_status_phrase(self) -> Optional[str]:
        return self._reason_phrase

    def add_response_property(self, key: str, value: str) -> None:
        self._response_header[key] = value

    def get_response_headers(self) -> Dict[str, str]:
        return self._response_header

    def get_response_header(self, key: str) -> Optional[str]:
        return self._response_header.get(key)


class Context:
    """The knowledge of a handler: its model, and for the length of a call the requests of the batch.

    One object lives as long as the model; `begin` gives it the requests of a call, as the original does.
    """

    # The arguments are the original's: scripts of tests make contexts of their own.
    def __init__(  # noqa: PLR0913
        self,
        model_name: str,
        model_dir: str,
        manifest: Optional[Dict[str, Any]],
        batch_size: Optional[int],
        gpu: Optional[int],
        mms_version: str = SERVER_VERSION,
        limit_max_image_pixels: bool = True,
        metrics: Any = None,
        model_yaml_config: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.model_name = model_name
        self.manifest = manifest
        self.system_properties: Dict[str, Any] = {
            "model_dir": model_dir,
            "gpu_id": gpu,
            "batch_size": batch_size,
            "server_name": SERVER_NAME,
            "server_version": mms_version,
            "limit_max_image_pixels": limit_max_image_pixels,
        }
        # Scripts written for the original read the private name too.
        self._system_properties = self.system_properties
        self.request_ids: Optional[Dict[int, str]] = None
        self.request_processor: Optional[List[RequestProcessor]] = None
        self.metrics = metrics
        self.model_yaml_config: Dict[str, Any] = {} if model_yaml_config is None else model_yaml_config
        self.stopping_criteria: Any = None
        self.cl_socket: Any = None
        self.header_key_sequence_id = os.environ.get("TS_REQUEST_SEQUENCE_ID", "ts_request_sequence_id")
        self.header_key_sequence_start = os.environ.get("TS_REQUEST_SEQUENCE_START", "ts_request_sequence_start")
        self.header_key_sequence_end = os.environ.get("TS_REQUEST_SEQUENCE_END", "ts_request_sequence_end")

    def begin(self, requests: Iterable[Tuple[str, RequestProcessor]]) -> None:
        """Become the context of these requests, each with its id."""
        ids, processors = {}, []
        for index, (request_id, processor) in enumerate(requests):
            ids[index] = request_id
            processors.append(processor)
        self.request_ids, self.request_processor = ids, processors
        if self.metrics is not None:
            self.metrics.request_ids = ids

    @property
    def _request_processor(self) -> Any:
        return self.request_processor

    # Requests

    def get_request_id(self, idx: int = 0) -> Optional[str]:
        return None if self.request_ids is None else self.request_ids.get(idx)

    def get_request_header(self, idx: int, key: str) -> Any:
        return self._request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx: int) -> Dict[str, Any]:
        headers: Dict[str, Any] = self._request_processor[idx].get_request_properties()
        return headers

    def get_sequence_id(self, idx: int) -> Any:
        return self.get_request_header(idx, self.header_key_sequence_id)

    # Answers

    def set_response_content_type(self, idx: int, value: str) -> None:
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> Optional[str]:
        return self.get_response_headers(idx).get("content-type")

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        self._request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx: int) -> Dict[str, str]:
        headers: Dict[str, str] = self._request_processor[idx].get_response_headers()
        return headers

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        if self.request_processor is not None and self.request_processor[idx] is not None:
            self.request_processor[idx].report_status(code, reason_phrase=phrase)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        for processor in self._request_processor:
            processor.report_status(code, reason_phrase=phrase)

    def get_response_status(self, idx: int) -> Tuple[int, Optional[str]]:
        processor = self._request_processor[idx]
        return processor.get_response_status_code(), processor.get_response_status_phrase()
