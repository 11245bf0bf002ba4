"""How a model calls other models of its server, which Triton calls business logic scripting (BLS)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
from concurrent.futures import Future
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Optional

from panglot_worker.dialects.triton import answers, reserved
from panglot_worker.errors import ClientError
from panglot_worker.items.calling import CalleeAnswer, OutgoingCalls, Take, seconds_of
from panglot_worker.line.port import Port
from panglot_worker.tensors import messages
from panglot_worker.tensors.infer import GRPC, Infer, WantedOutput, Wishes, gathered
from panglot_worker.tensors.tensors import Tensor

NOT_READY = "Failed for execute the inference request. Model '%s' is not ready."
CODES = {400: 3, 404: 2, 413: 3, 501: 5, 503: 4}
"""The codes of a TritonError by the status of an answer; any other is an internal error."""
INTERNAL = 1
NEVER_SENT = 0
"""The number of a call that was refused here: no other call has it."""
NAMED = {name: code for code, name in answers.CODES.items()}


class ModelCaller:
    """Makes the calls of one worker's model. Any thread may use it."""

    def __init__(self, port: Port, utils: Any) -> None:
        self._calls = OutgoingCalls(port)
        self._utils = utils

    def call(self, request: Any, timeout: int) -> Any:
        """The response to a request of the model's own; an error is a response too. Blocks."""
        answered: "Future[CalleeAnswer]" = Future()
        number = self._begin(request, answered.set_result, False, timeout)
        try:
            return self._response(request, answered.result())
        except BaseException:
            self._calls.cancel(number)
            raise

    async def call_async(self, request: Any, timeout: int) -> Any:
        """The same, without blocking the event loop."""
        answered: "Future[CalleeAnswer]" = Future()
        number = self._begin(request, answered.set_result, False, timeout)
        try:
            # Shielded: the thread that reads sets the result, and would fail on a future that was cancelled.
            return self._response(request, await asyncio.shield(asyncio.wrap_future(answered)))
        except BaseException:
            self._calls.cancel(number)
            raise

    def stream(self, request: Any, timeout: int) -> "ResponseIterator":
        """All responses to a request of the model's own, as they come."""
        coming = Arrivals()
        number = self._begin(request, coming.put, True, timeout)
        return ResponseIterator(self, request, coming, number)

    def is_ready(self, model: str, version: str) -> bool:
        """Whether a model takes requests."""
        return self._ask("ready", model, version).status == 200

    def change(self, what: str, model: str) -> None:
        """Have the server `load` or `unload` a model, and wait for that. Raises TritonModelException."""
        answer = self._ask(what, model, "")
        if answer.status != 200:
            raise self._utils.TritonModelException("Failed to %s model '%s': %s" % (what, model, answer.message))

    def _ask(self, what: str, model: str, version: str) -> CalleeAnswer:
        answered: "Future[CalleeAnswer]" = Future()
        self._calls.ask(what, str(model), str(version), answered.set_result)
        return answered.result()

    def cancel(self, number: int) -> None:
        self._calls.cancel(number)

    def took(self, number: int, answer: CalleeAnswer) -> None:
        self._calls.took(number, answer)

    def _begin(self, request: Any, take: Take, streams: bool, timeout: int) -> int:
        version = request.model_version()
        named = str(version) if version > 0 else ""
        wanted = tuple(WantedOutput(name) for name in request.requested_output_names())
        wishes = Wishes(GRPC, request.model_name(), named, request.request_id(), wanted)
        try:
            inputs = gathered([self._tensor(tensor) for tensor in request.inputs()])
        except ClientError as error:
            take(CalleeAnswer(400, message=str(error)))
            return NEVER_SENT
        body = messages.request(Infer(wishes, inputs, _parameters(request)))
        return self._calls.begin(request.model_name(), named, body, take, streams, seconds_of(timeout))

    def _tensor(self, tensor: Any) -> Tensor:
        return answers.tensor_of(tensor.name(), tensor.as_numpy(), tensor._is_bf16, self._utils)

    def _response(self, request: Any, answer: CalleeAnswer) -> Any:
        """An answer as the response that a model gets."""
        utils = self._utils
        if answer.status != 200:
            message = answer.message if answer.code != "no_model" else NOT_READY % request.model_name()
            code = NAMED.get(answer.code, CODES.get(answer.status, INTERNAL))
            return utils.InferenceResponse(error=utils.TritonError(message, code))
        response = messages.response(answer.body)
        own = {name: value for name, value in response.parameters.items() if name != messages.IS_LAST}
        outputs = [self._given(tensor) for tensor in response.outputs.values()]
        return utils.InferenceResponse(outputs, parameters=own)

    def _given(self, tensor: Tensor) -> Any:
        if tensor.datatype != "BF16":
            return self._utils.Tensor(tensor.name, tensor.array())
        import numpy

        return self._utils.bf16_tensor(tensor.name, numpy.frombuffer(tensor.data, "<u2").reshape(tensor.shape))


class Arrivals:
    """The parts of a stream that have come: put by the thread that reads, and taken by any other."""

    def __init__(self) -> None:
        self._parts: "queue.SimpleQueue[CalleeAnswer]" = queue.SimpleQueue()
        self._wake: Optional[Callable[[], Any]] = None

    def put(self, answer: CalleeAnswer) -> None:
        self._parts.put(answer)
        wake = self._wake
        if wake is not None:
            # The script's event loop may have been closed meanwhile.
            with contextlib.suppress(RuntimeError):
                wake()

    def get(self) -> CalleeAnswer:
        """The next part. Blocks."""
        return self._parts.get()

    async def get_async(self) -> CalleeAnswer:
        """The same without blocking the event loop. No thread waits: it would go on when this is cancelled."""
        arrived = asyncio.Event()
        # Before the look: a part that comes in between must not be missed.
        self._wake = functools.partial(asyncio.get_running_loop().call_soon_threadsafe, arrived.set)
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    return self._parts.get_nowait()
                await arrived.wait()
                arrived.clear()
        finally:
            self._wake = None


class ResponseIterator:
    """The responses of a decoupled model, for `for` and `async for`. A loop that ends early cancels the call."""

    def __init__(self, caller: ModelCaller, request: Any, coming: Arrivals, number: int) -> None:
        self._caller = caller
        self._request = request
        self._coming = coming
        self._number = number

    def __iter__(self) -> Iterator[Any]:
        try:
            is_last = False
            while not is_last:
                answer = self._coming.get()
                is_last = not answer.more
                yield from self._responses(answer)
                # Only when the model asks for the next one: until then the callee may have to wait.
                self._caller.took(self._number, answer)
        finally:
            self._caller.cancel(self._number)

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            is_last = False
            while not is_last:
                answer = await self._coming.get_async()
                is_last = not answer.more
                for response in self._responses(answer):
                    yield response
                self._caller.took(self._number, answer)
        finally:
            self._caller.cancel(self._number)

    def _responses(self, answer: CalleeAnswer) -> Iterator[Any]:
        # The end of a stream may come alone, without a message.
        if answer.status != 200 or len(answer.body):
            yield self._caller._response(self._request, answer)


def _parameters(request: Any) -> Dict[str, Any]:
    """The parameters of a request, with those that Triton reserves."""
    parameters: Dict[str, Any] = dict(request._parameters)
    if request.correlation_id():
        parameters["sequence_id"] = request.correlation_id()
        parameters["sequence_start"] = bool(request.flags() & reserved.STARTS)
        parameters["sequence_end"] = bool(request.flags() & reserved.ENDS)
    return parameters
