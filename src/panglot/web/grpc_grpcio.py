"""gRPC by grpcio's own server, on the loop of everything else. Messages stay bytes on their way in and out.

This file alone knows grpcio: what the calls mean is in `grpc_services`. It starts, drains and closes as the HTTP
servers do, beside them in `Listeners`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc

from panglot.errors import StartError
from panglot.settings import Settings
from panglot.web.front import Front
from panglot.web.grpc_call import Sent, begin
from panglot.web.grpc_services import RpcStream, Service, Services
from panglot.web.grpc_statuses import RpcError
from panglot.web.models import Model
from panglot.web.v2_routes import GRPC, STREAM

log = logging.getLogger("panglot.web")
CODES = {code.value[0]: code for code in grpc.StatusCode}
MOST_STREAMS = 1024
"""Calls at once on one connection."""
IDLE = 300.0
"""Seconds after which a connection without calls is closed; clients of gRPC make another when they need it."""
LAST_WORDS = 1.0
"""Seconds that answers are given to leave, once all calls are answered."""


class GrpcServer:
    """Listens for gRPC on a port of its own, for all models of a front."""

    def __init__(self, front: Front, settings: Settings) -> None:
        self.front = front
        self.settings = settings
        self.services = Services(front)
        self.port = 0
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises StartError."""
        settings = self.settings
        server = grpc.aio.server(options=self._options())
        server.add_generic_rpc_handlers((GrpcioCalls(self.services),))
        host = f"[{settings.host}]" if ":" in settings.host.strip("[]") else settings.host
        try:
            self.port = self._listen(server, f"{host}:{settings.grpc_port}")
        except RuntimeError:
            fix = "choose another --grpc-port, or --grpc-port 0 for a free one"
            raise StartError(f"{settings.host}:{settings.grpc_port}: gRPC cannot listen there", fix=fix) from None
        self._server = server
        await server.start()
        log.info("listening on %s too, for gRPC", self.url)

    def _options(self) -> list[tuple[str, int]]:
        """The limits of HTTP, as grpcio words them. It has no way to close the connection that is idle longest."""
        settings = self.settings
        return [
            ("grpc.max_receive_message_length", self.front.room.largest_body),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", MOST_STREAMS),
            ("grpc.max_allowed_incoming_connections", settings.max_connections),
            ("grpc.server_handshake_timeout_ms", int(settings.header_timeout * 1000)),
            ("grpc.max_connection_idle_ms", int(max(IDLE, settings.keep_alive) * 1000)),
            ("grpc.keepalive_time_ms", int(settings.peer_timeout * 1000)),
            ("grpc.so_reuseport", 0),
        ]

    def _listen(self, server: grpc.aio.Server, address: str) -> int:
        settings = self.settings
        if not settings.tls_cert:
            return int(server.add_insecure_port(address))
        pair = (Path(settings.tls_key).read_bytes(), Path(settings.tls_cert).read_bytes())
        return int(server.add_secure_port(address, grpc.ssl_server_credentials([pair])))

    @property
    def url(self) -> str:
        return f"{'grpcs' if self.settings.tls_cert else 'grpc'}://{self.settings.host}:{self.port}"

    async def drain(self) -> None:
        """Take no more calls, answer those that have come, then end what only waits."""
        if self._server is None:
            return
        stopping = asyncio.ensure_future(self._server.stop(self.settings.drain))
        while self.services.open:
            await asyncio.sleep(0.02)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(stopping), LAST_WORDS)
        await self._server.stop(0)

    def is_asking(self, model: Model) -> bool:
        """Nobody knows what arrives at grpcio; the engine knows what has come."""
        return False

    def unanswered(self) -> int:
        return len(self.services.open)

    def close(self) -> None:
        if self._server is not None:
            self._closing = asyncio.ensure_future(self._server.stop(0))


class GrpcioCalls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds what answers a call, and wraps it as grpcio wants it."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def service(self, details: Any) -> Any:
        """What answers a call, given its name and what the client says besides."""
        try:
            service = self.services.find(details.method, _authorization(details.invocation_metadata))
        except RpcError as error:
            return grpc.stream_unary_rpc_method_handler(_aborting(error))
        if service.hold is not None:
            return grpc.stream_stream_rpc_method_handler(functools.partial(_held, service.hold))
        if service.answer is not None:
            return grpc.unary_unary_rpc_method_handler(functools.partial(_answered, service))
        return grpc.unary_unary_rpc_method_handler(self._model_infer)

    async def _model_infer(self, body: bytes, context: Any) -> bytes:
        """ModelInfer: the answer of the engine, or the status that its fault has."""
        answered: asyncio.Future[tuple[int, str, bytes]] = asyncio.get_running_loop().create_future()

        def told(code: int, sentence: str, message: Any, more: bool) -> None:
            if not answered.done():
                answered.set_result((code, sentence, bytes(message)))

        try:
            call = begin(self.services.front, sent(body, context), told)
        except RpcError as error:
            await abort(context, error)
        self.services.open.add(call)
        try:
            code, sentence, message = await answered
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            self.services.open.discard(call)
        if code:
            await abort(context, RpcError(code, sentence))
        return message


class GrpcioStream:
    """A call with messages each way. See `RpcStream`."""

    def __init__(self, requests: Any, context: Any) -> None:
        self._requests = requests
        self.write = context.write

    async def __aiter__(self) -> AsyncIterator[Sent]:
        async for body in self._requests:
            yield Sent(STREAM, body)


async def _held(hold: Callable[[RpcStream], Coroutine[Any, Any, None]], requests: Any, context: Any) -> None:
    try:
        await hold(GrpcioStream(requests, context))
    except RpcError as error:
        await abort(context, error)


async def _answered(service: Service, body: bytes, context: Any) -> bytes:
    assert service.answer is not None
    try:
        answer = service.answer(body)
        return await answer if isinstance(answer, Coroutine) else answer
    except RpcError as error:
        await abort(context, error)
        raise


def sent(body: bytes, context: Any) -> Sent:
    """What a client sends with an inference."""
    request_id = trace = b""
    for key, value in context.invocation_metadata() or ():
        if key == "x-request-id":
            request_id = _bytes(value)
        elif key == "traceparent":
            trace = _bytes(value).replace(b"\0", b"")
    return Sent(GRPC, body, context.time_remaining(), request_id, trace)


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1", "replace") if isinstance(value, str) else value


def _authorization(metadata: Any) -> bytes:
    return next((_bytes(value) for key, value in metadata or () if key == "authorization"), b"")


async def abort(context: Any, error: RpcError) -> None:
    """End a call with a status and a sentence. Always raises."""
    await context.abort(CODES[error.code], error.message)


def _aborting(error: RpcError) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
    async def refuse(requests: Any, context: Any) -> None:
        await abort(context, error)

    return refuse
