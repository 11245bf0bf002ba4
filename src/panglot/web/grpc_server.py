"""gRPC by grpcio's own server, on the loop of everything else. Messages stay bytes on their way in and out.

This file alone knows the transport: what the calls mean is in `grpc_call` and `grpc_methods`. It starts, drains and
closes as the HTTP servers do, beside them in `Listeners`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc

from panglot.errors import StartError
from panglot.settings import Settings
from panglot.web import grpc_methods, grpc_reflection, v2_repository
from panglot.web.access import Access
from panglot.web.contract import CONTROL, INFER, PUBLIC
from panglot.web.front import Front
from panglot.web.grpc_call import RpcCall, Sent, begin
from panglot.web.grpc_conversation import Conversation
from panglot.web.grpc_methods import METHODS, SERVICE
from panglot.web.grpc_statuses import INVALID_ARGUMENT, UNAUTHENTICATED, RpcError, refused
from panglot.web.v2_routes import GRPC

log = logging.getLogger("panglot.web")
CODES = {code.value[0]: code for code in grpc.StatusCode}
MOST_STREAMS = 1024
"""Calls at once on one connection."""
IDLE = 300.0
"""Seconds after which a connection without calls is closed; clients of gRPC make another when they need it."""
WATCH_EVERY = 0.5
LAST_WORDS = 1.0
"""Seconds that answers are given to leave, once all calls are answered."""
NO_TOKEN = RpcError(UNAUTHENTICATED, "this server needs a token: metadata authorization: Bearer ...")


class GrpcServer:
    """Listens for gRPC on a port of its own, for all models of a front."""

    def __init__(self, front: Front, settings: Settings) -> None:
        self.front = front
        self.settings = settings
        self.open: set[RpcCall] = set()
        self.port = 0
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises StartError."""
        settings = self.settings
        server = grpc.aio.server(options=self._options())
        server.add_generic_rpc_handlers((Calls(self),))
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
        while self.open:
            await asyncio.sleep(0.02)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(stopping), LAST_WORDS)
        await self._server.stop(0)

    def unanswered(self) -> int:
        return len(self.open)

    def close(self) -> None:
        if self._server is not None:
            self._closing = asyncio.ensure_future(self._server.stop(0))


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds what answers a call."""

    def __init__(self, server: GrpcServer) -> None:
        self.server = server
        self.front = server.front
        self._refuse = grpc.stream_unary_rpc_method_handler(_aborting(NO_TOKEN))
        self._off = grpc.stream_unary_rpc_method_handler(_aborting(refused(v2_repository.OFF)))
        other = grpc.unary_unary_rpc_method_handler
        self._known = {
            INFER_CALL: (INFER, grpc.unary_unary_rpc_method_handler(self._model_infer)),
            STREAM_CALL: (INFER, grpc.stream_stream_rpc_method_handler(self._model_stream_infer)),
            WATCH: (PUBLIC, grpc.unary_stream_rpc_method_handler(self._health_watch)),
            **{name: (method.access, other(functools.partial(self._other, name))) for name, method in METHODS.items()},
        }
        """Who may make a call, and what answers it."""
        reflect = grpc.stream_stream_rpc_method_handler(self._reflection)
        self._known |= dict.fromkeys(grpc_reflection.METHODS, (INFER, reflect))

    def service(self, details: Any) -> Any:
        """What answers a call, given its name and what the client says besides."""
        access, answering = self._known.get(details.method, (INFER, None))
        if access == CONTROL and self.front.repository is None:
            return self._off
        if is_refused(self.front.access, access, details.invocation_metadata):
            return self._refuse
        if answering is None:
            return grpc.stream_unary_rpc_method_handler(_aborting(grpc_methods.refusal(details.method)))
        return answering

    async def _model_infer(self, body: bytes, context: Any) -> bytes:
        """ModelInfer: the answer of the engine, or the status that its fault has."""
        answered: asyncio.Future[tuple[int, str, bytes]] = asyncio.get_running_loop().create_future()

        def told(code: int, sentence: str, message: Any, more: bool) -> None:
            if not answered.done():
                answered.set_result((code, sentence, bytes(message)))

        try:
            call = begin(self.front, sent(GRPC, body, context), told)
        except RpcError as error:
            await abort(context, error)
        self.server.open.add(call)
        try:
            code, sentence, message = await answered
        except asyncio.CancelledError:
            call.cancel()
            raise
        finally:
            self.server.open.discard(call)
        if code:
            await abort(context, RpcError(code, sentence))
        return message

    async def _model_stream_infer(self, requests: Any, context: Any) -> None:
        try:
            await Conversation(self.front, self.server.open, context).hold(requests)
        except RpcError as error:
            await abort(context, error)

    async def _other(self, method: str, body: bytes, context: Any) -> bytes:
        try:
            return await grpc_methods.respond(self.front, method, body)
        except RpcError as error:
            await abort(context, error)
            raise

    async def _health_watch(self, body: bytes, context: Any) -> AsyncIterator[bytes]:
        """Tell whether a service is served, and again whenever that changes."""
        last = None
        while not self.front.draining:
            status = grpc_methods.watched(self.front, body)
            if status != last:
                last = status
                yield status
            await asyncio.sleep(WATCH_EVERY)

    async def _reflection(self, requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for body in requests:
            try:
                yield grpc_reflection.respond(body)
            except ValueError:
                await abort(context, RpcError(INVALID_ARGUMENT, "the message cannot be read"))


INFER_CALL, STREAM_CALL = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelStreamInfer"
WATCH = f"/{grpc_methods.HEALTH}/Watch"


def sent(form: bytes, body: bytes, context: Any) -> Sent:
    """What a client sends with an inference."""
    request_id = trace = b""
    for key, value in context.invocation_metadata() or ():
        if key == "x-request-id":
            request_id = _bytes(value)
        elif key == "traceparent":
            trace = _bytes(value).replace(b"\0", b"")
    return Sent(form, body, context.time_remaining(), request_id, trace)


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1", "replace") if isinstance(value, str) else value


def is_refused(access: Access, wanted: str, metadata: Any) -> bool:
    """Whether a call lacks the token."""
    return access.refuses(wanted, next((_bytes(value) for key, value in metadata or () if key == "authorization"), b""))


async def abort(context: Any, error: RpcError) -> None:
    """End a call with a status and a sentence. Always raises."""
    await context.abort(CODES[error.code], error.message)


def _aborting(error: RpcError) -> Callable[[Any, Any], Awaitable[None]]:
    async def refuse(requests: Any, context: Any) -> None:
        await abort(context, error)

    return refuse
