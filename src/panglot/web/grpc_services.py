"""What answers each call of gRPC, whatever transport it came by. A transport finds a service here and runs it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from panglot.web import grpc_methods, grpc_reflection, v2_repository
from panglot.web.contract import CONTROL, INFER, PUBLIC
from panglot.web.front import Front
from panglot.web.grpc_call import RpcCall, Sent
from panglot.web.grpc_conversation import Conversation
from panglot.web.grpc_encoding import plain
from panglot.web.grpc_methods import HEALTH, METHODS, SERVICE
from panglot.web.grpc_statuses import INVALID_ARGUMENT, UNAUTHENTICATED, RpcError, refused

INFER_CALL, STREAM_CALL = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelStreamInfer"
WATCH = f"/{HEALTH}/Watch"
WATCH_EVERY = 0.5
NO_TOKEN = RpcError(UNAUTHENTICATED, "this server needs a token: metadata authorization: Bearer ...")


class RpcStream(Protocol):
    """A call with any number of messages each way, as its transport has it."""

    def __aiter__(self) -> AsyncIterator[Sent]:
        """What the client sends, as it comes."""

    async def write(self, message: bytes) -> None:
        """Send a message to the client, and wait while it takes no more."""


class Service(NamedTuple):
    """How a call is answered; one that has neither `answer` nor `hold` is an inference: see `grpc_call.begin`."""

    access: str
    answer: Callable[[bytes], bytes | Coroutine[Any, Any, bytes]] | None = None
    """From its only message to the only answer. Raises RpcError."""
    hold: Callable[[RpcStream], Coroutine[Any, Any, None]] | None = None
    """Answers all that comes, as it comes. Raises RpcError."""


class Services:
    """All calls that a server answers."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.open: set[RpcCall] = set()
        """Inferences that are being answered."""
        self._known = {
            INFER_CALL: Service(INFER),
            STREAM_CALL: Service(INFER, hold=self._model_stream_infer),
            WATCH: Service(PUBLIC, hold=self._health_watch),
            **dict.fromkeys(grpc_reflection.METHODS, Service(INFER, hold=_reflection)),
        }
        for name, method in METHODS.items():
            self._known[name] = Service(method.access, functools.partial(grpc_methods.respond, front, name))

    def find(self, method: str, authorization: bytes) -> Service:
        """What answers a call, given its name and the token it came with. Raises RpcError."""
        service = self._known.get(method)
        access = service.access if service is not None else INFER
        if access == CONTROL and self.front.repository is None:
            raise refused(v2_repository.OFF)
        if self.front.access.refuses(access, authorization):
            raise NO_TOKEN
        if service is None:
            raise grpc_methods.refusal(method)
        return service

    async def _model_stream_infer(self, stream: RpcStream) -> None:
        await Conversation(self.front, self.open, stream).hold(stream)

    async def _health_watch(self, stream: RpcStream) -> None:
        """Tell whether a service is served, and again whenever that changes."""
        async for sent in stream:
            last = None
            while not self.front.draining:
                status = grpc_methods.watched(self.front, plain(sent.encoding, sent.body))
                if status != last:
                    last = status
                    await stream.write(status)
                await asyncio.sleep(WATCH_EVERY)
            return


async def _reflection(stream: RpcStream) -> None:
    async for sent in stream:
        try:
            await stream.write(grpc_reflection.respond(plain(sent.encoding, sent.body)))
        except ValueError:
            raise RpcError(INVALID_ARGUMENT, "the message cannot be read") from None
