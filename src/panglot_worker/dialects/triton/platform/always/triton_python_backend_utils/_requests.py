"""Requests, and responses to them."""

import copy
import json
import queue
import weakref

from triton_python_backend_utils._errors import TritonError, TritonModelException

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_MEMORY_CPU = 0
TRITONSERVER_MEMORY_GPU = 2
BLS = "a model cannot call other models here (BLS): let its clients call them, or import what it needs"


class PreferredMemory:
    """Where a model would like outputs of others to be; here they are on the CPU."""

    def __init__(self, preferred_memory_type=TRITONSERVER_MEMORY_CPU, preferred_device_id=0):
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class InferenceRequest:
    """One request. Models are given them; those they make themselves lead nowhere here."""

    def __init__(  # noqa: PLR0913
        self, request_id="", correlation_id=0, inputs=(), requested_output_names=(), model_name="", model_version=-1,
        flags=0, timeout=0, preferred_memory=None, trace=None, parameters=None,
    ):  # fmt: skip
        self._inputs = list(inputs)
        self._id = request_id
        self._correlation_id = correlation_id
        self._requested = list(requested_output_names)
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self._preferred_memory = preferred_memory or PreferredMemory()
        self._parameters = dict(parameters or {})
        self._responses = None
        self._answered = False
        """Whether somebody waits for its response: not of those that a model makes itself."""

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

    def timeout(self):
        return self._timeout

    def preferred_memory(self):
        return self._preferred_memory

    def parameters(self):
        return json.dumps(self._parameters)

    def trace(self):
        return None

    def is_cancelled(self):
        return self._responses is not None and self._responses.cancelled

    def get_response_sender(self):
        if self._responses is None:
            if not self._answered:
                raise TritonModelException("nobody waits for responses to a request that the model made itself")
            self._responses = Responses()
        return self._responses.sender()

    def exec(self, decoupled=False, execution_timeout=0):
        raise TritonModelException(BLS)

    async def async_exec(self, decoupled=False, execution_timeout=0):
        raise TritonModelException(BLS)


class InferenceResponse:
    """What a model answers one request with: outputs, or an error."""

    def __init__(self, output_tensors=(), error=None, parameters=None):
        if isinstance(error, str):
            error = TritonError(error)
        self._outputs = list(output_tensors)
        self._error = error
        self._parameters = dict(parameters or {})
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
    """A sender went away before it said that its response was the last."""


class Responses:
    """What a decoupled model sends for one request: `sent` has the responses for the reader, and at last None."""

    def __init__(self):
        self.sent = queue.Queue()
        self.cancelled = False
        self.ended = False
        self.handed_out = None

    def sender(self):
        """The sender of this request: one object, for as long as the model holds it."""
        sender = self.handed_out() if self.handed_out is not None else None
        if sender is None:
            sender = ResponseSender(self)
            self.handed_out = weakref.ref(sender)
        return sender

    def nobody_sends(self):
        """Note that the model has dropped the request: nothing more can come."""
        if not self.ended:
            self.sent.put(Lost("the model let go of its request and sent no last response"))


class ResponseSender:
    """Takes the responses of a decoupled model, from any of its threads."""

    def __init__(self, responses):
        self._responses = responses

    def send(self, response=None, flags=0):
        """Send a response, say that there are no more, or both."""
        responses = self._responses
        if responses.ended:
            raise TritonModelException("a response was sent after the last one")
        if response is None and not flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL:
            raise TritonModelException("send() without a response must say that it is the last")
        if not isinstance(response, (InferenceResponse, type(None))):
            raise TritonModelException("send() takes an InferenceResponse, not %s" % type(response).__name__)
        last = bool(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        if response is not None:
            # A copy, since the model may send the same response again.
            response = copy.copy(response)
            response._last = last
            responses.sent.put(response)
        if last:
            responses.ended = True
            responses.sent.put(None)

    def is_cancelled(self):
        return self._responses.cancelled

    def __del__(self):
        self._responses.nobody_sends()


def get_input_tensor_by_name(request, name):
    return next((tensor for tensor in request.inputs() if tensor.name() == name), None)


def get_output_tensor_by_name(response, name):
    return next((tensor for tensor in response.output_tensors() if tensor.name() == name), None)


def load_model(*arguments, **named):
    raise TritonModelException("a model cannot load other models here")


def unload_model(*arguments, **named):
    raise TritonModelException("a model cannot unload other models here")


def is_model_ready(model_name, model_version=""):
    raise TritonModelException(BLS)
