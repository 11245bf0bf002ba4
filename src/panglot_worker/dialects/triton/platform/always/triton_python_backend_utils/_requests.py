"""Requests, and responses to them."""

import copy
import json
import threading

from triton_python_backend_utils._errors import TritonError, TritonModelException, check_parameters, incompatible
from triton_python_backend_utils._tensors import Tensor

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
TRITONSERVER_MEMORY_CPU = 0
TRITONSERVER_MEMORY_GPU = 2
BLS = "a model can call other models (BLS) only where a server runs it"
CANNOT_SEND = "Unable to send response. "


class PreferredMemory:
    """Where a model would like outputs of others to be; here they are on the CPU."""

    def __init__(self, preferred_memory_type=TRITONSERVER_MEMORY_CPU, preferred_device_id=0):
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceRequest:
    """One request. Models are given them, and make them to call other models of the server."""

    caller = None
    """What makes these calls; the dialect sets it before the model is loaded."""

    def __init__(  # noqa: PLR0913
        self, request_id="", correlation_id=0, inputs=None, requested_output_names=None, model_name=None,
        model_version=-1, flags=0, timeout=0, preferred_memory=None, trace=None, parameters=None,
    ):  # fmt: skip
        self._inputs = inputs
        self._id = request_id
        self._correlation_id = correlation_id
        self._requested = requested_output_names
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self._check()
        self._preferred_memory = preferred_memory or PreferredMemory()
        self._parameters = check_parameters(parameters)
        self._responses = None
        self._open = None
        """Makes the way for its responses; None for those that a model makes itself."""
        self._is_cancelled = None

    @classmethod
    def _received(cls, inputs, wanted, model, version, more):
        """A request that a client has sent, and that was checked already; `more` is what else a constructor takes."""
        request = cls.__new__(cls)
        request._inputs, request._requested = inputs, wanted
        request._model_name, request._model_version = model, version
        request._id = more["request_id"]
        request._correlation_id = more.get("correlation_id", 0)
        request._flags, request._timeout = more.get("flags", 0), more.get("timeout", 0)
        request._preferred_memory = PreferredMemory()
        request._parameters = check_parameters(more.get("parameters"))
        request._responses = request._open = request._is_cancelled = None
        return request

    def _check(self):
        inputs, names = self._inputs, self._requested
        texts = (self._id, self._model_name, *(names if isinstance(names, (list, tuple)) else (None,)))
        numbers = (self._model_version, self._flags, self._timeout)
        if (
            not isinstance(inputs, (list, tuple))
            or not all(isinstance(tensor, (Tensor, type(None))) for tensor in inputs)
            or not all(isinstance(text, str) for text in texts)
            or not all(isinstance(number, int) for number in numbers)
        ):
            signature = (
                "InferenceRequest(inputs: List[Tensor], requested_output_names: List[str], model_name: str, ...)"
            )
            raise incompatible(signature, inputs, names, self._model_name, *numbers)
        if not isinstance(self._correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        about = "for request with id '%s' and model name '%s' should not be empty." % (self._id, self._model_name)
        if any(tensor is None for tensor in inputs):
            raise TritonModelException("Input tensor " + about)
        if "" in names:
            raise TritonModelException("Requested output name " + about)
        self._inputs, self._requested = list(inputs), list(names)

    def inputs(self):
        return self._inputs

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation_id

    def requested_output_names(self):
        return self._requested

    def model_name(self):
        return self._model_name

    def model_version(self):
        return self._model_version

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        self._flags = flags

    def set_release_flags(self, flags):
        if flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
            raise TritonModelException("requests are not rescheduled here: answer it, or keep its response sender")

    def timeout(self):
        return self._timeout

    def preferred_memory(self):
        return self._preferred_memory

    def parameters(self):
        return json.dumps(self._parameters)

    def trace(self):
        return None

    def is_cancelled(self):
        return self._is_cancelled is not None and self._is_cancelled()

    def get_response_sender(self):
        if self._responses is None:
            if self._open is None:
                raise TritonModelException("nobody waits for responses to a request that the model made itself")
            self._responses = self._open(self)
        self._responses.requested = True
        return ResponseSender(self._responses)

    def exec(self, decoupled=False, execution_timeout=0):
        """Call the model; an error of the call is a response too. Of a decoupled model: an iterator of responses."""
        caller = self._caller()
        call = caller.stream if decoupled else caller.call
        return call(self, execution_timeout or self._timeout)

    async def async_exec(self, decoupled=False, execution_timeout=0):
        """The same without blocking the event loop; of a decoupled model: an asynchronous iterator."""
        caller = self._caller()
        if decoupled:
            return caller.stream(self, execution_timeout or self._timeout)
        return await caller.call_async(self, execution_timeout or self._timeout)

    def _caller(self):
        if self.caller is None:
            raise TritonModelException(BLS)
        return self.caller


class InferenceResponse:
    """What a model answers one request with: outputs, or an error."""

    def __init__(self, output_tensors=(), error=None, parameters=None):
        is_list = isinstance(output_tensors, (list, tuple))
        if (
            not is_list
            or not all(isinstance(tensor, (Tensor, type(None))) for tensor in output_tensors)
            or not isinstance(error, (TritonError, type(None)))
        ):
            signature = (
                "InferenceResponse(output_tensors: List[Tensor] = [], error: TritonError = None, parameters = None)"
            )
            raise incompatible(signature, output_tensors, error)
        self._outputs = list(output_tensors)
        for tensor in self._outputs:
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
        self._error = error
        self._parameters = check_parameters(parameters)
        self._last = False

    def output_tensors(self):
        return self._outputs

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return json.dumps(self._parameters)


class Lost(Exception):
    """A request whose responses can no longer come: nothing of the model refers to it or to its sender."""


class Responses:
    """The way of a model's responses: owned by the request and by its senders, and by nothing else.

    `way` takes each response and is called `lost` when the last of these owners is gone before the last response.
    """

    def __init__(self, way, decoupled):
        self._way = way
        self._decoupled = decoupled
        self._lock = threading.Lock()
        self._sent = 0
        self._ended = False
        self.requested = False
        """Whether the model has asked for a sender."""

    def send(self, response, flags):
        """Pass on a response, the end, or both. Raises TritonModelException with Triton's sentences."""
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(CANNOT_SEND + "Unsupported flag provided.")
        if response is None and not flags:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        with self._lock:
            self._check(response, flags)
            self._sent += response is not None
            self._ended = bool(flags)
            if response is not None:
                # A copy, since the model may send the same response again.
                response = copy.copy(response)
                response._last = self._ended
            self._way.take(response, self._ended)

    def _check(self, response, flags):
        if self._ended:
            raise TritonModelException(CANNOT_SEND + "Response sender has been closed.")
        if not self._decoupled:
            if response is not None and self._sent:
                raise TritonModelException(CANNOT_SEND + "Non-decoupled model cannot send more than one response.")
            if response is None and not self._sent:
                raise TritonModelException(
                    CANNOT_SEND + "Non-decoupled model cannot send complete final before sending a response."
                )

    def is_cancelled(self):
        return self._way.is_cancelled()

    def __del__(self):
        if not self._ended:
            self._way.lost()


class ResponseSender:
    """Takes the responses of a model, from any of its threads."""

    def __init__(self, responses):
        self._responses = responses

    def send(self, response=None, flags=0):
        """Send a response, say that there are no more, or both."""
        if not isinstance(response, (InferenceResponse, type(None))) or not isinstance(flags, int):
            raise TypeError(
                "send(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: ResponseSender, response: InferenceResponse = None, flags: int = 0) -> None"
            )
        self._responses.send(response, flags)

    def is_cancelled(self):
        return self._responses.is_cancelled()


def get_input_tensor_by_name(request, name):
    return next((tensor for tensor in request.inputs() if tensor.name() == name), None)


def get_output_tensor_by_name(response, name):
    return next((tensor for tensor in response.output_tensors() if tensor.name() == name), None)


def load_model(model_name, files=None, config=None):
    """Load a model of the server's folder, or load it anew; returns when it is ready. Needs `--admin`."""
    if files or config:
        raise TritonModelException("models and their configuration come from the server's folder, not from a call")
    _caller().change("load", model_name)


def unload_model(model_name, unload_dependents=False):
    """Unload all versions of a model; `unload_dependents` means nothing here. Needs `--admin`."""
    _caller().change("unload", model_name)


def is_model_ready(model_name, model_version=""):
    """Whether a model of the server takes requests."""
    return _caller().is_ready(model_name, model_version)


def _caller():
    if InferenceRequest.caller is None:
        raise TritonModelException(BLS)
    return InferenceRequest.caller
