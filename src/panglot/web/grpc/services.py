"""The services that answer calls of gRPC. HTTP/2 finds a service here and runs it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from panglot.engine.call import Fault
from panglot.web.access.keys import KeyHolder, Wanted
from panglot.web.access.reached_models import reached_by
from panglot.web.access.remembered_key import RememberedKey
from panglot.web.contract import CONTROL, INFER, PUBLIC, RequestLine, RouteRefused, TokenForm
from panglot.web.front import Front
from panglot.web.grpc import descriptors, methods, reflection
from panglot.web.grpc.call import RpcCall
from panglot.web.grpc.messages import named
from panglot.web.grpc.methods import HEALTH, METHODS, SERVICE
from panglot.web.grpc.native import UNREADABLE, StreamedAnswer
from panglot.web.grpc.statuses import UNAUTHENTICATED, Refusal, RpcError, refused
from panglot.web.grpc.stream_infer import StreamInfer
from panglot.web.grpc.watch import Watches
from panglot.web.models import ModelAdministration
from panglot.web.paths import RpcRoute
from panglot.web.v2 import repository

if TYPE_CHECKING:
    from panglot.web.http2.bidi_call import BidiCall

INFER_CALL, STREAM_CALL = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelStreamInfer"
WATCH = f"/{HEALTH}/Watch"
Administer = Callable[[ModelAdministration, bytes], Awaitable[bytes]]
NO_TOKEN = Refusal(UNAUTHENTICATED, "this server needs a token: metadata authorization: Bearer ...")


class Service(NamedTuple):
    """How a call is answered: by `answer`, by `answer_stream`, by the engine if it only `infers`, or by `Watches`."""

    access: str
    answer: Callable[[bytes, KeyHolder | None], bytes | Coroutine[Any, Any, bytes]] | None = None
    """From its only message, and the client that has a key, to the only answer. Raises RpcError."""
    answer_stream: Callable[[BidiCall], Coroutine[Any, Any, None]] | None = None
    """Answers many messages, as they come. Raises RpcError."""
    infers: bool = False
    """Whether its messages are for models: these alone may be large, and are read into shared memory."""
    is_public: bool = False
    """Whether a call needs no token: then it may use very little memory."""
    native: RpcRoute | None = None
    """Of a service that a dialect brings: the method, where a script answers it."""


class Services:
    """All calls that a server answers."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.open: set[RpcCall] = set()
        """Inferences of streams that are being answered."""
        self.watches = Watches(front)
        self._known = {
            INFER_CALL: Service(INFER, infers=True),
            STREAM_CALL: Service(INFER, answer_stream=self._model_stream_infer, infers=True),
            WATCH: Service(PUBLIC, is_public=True),
            **dict.fromkeys(reflection.METHODS, Service(INFER, answer_stream=self._reflection)),
        }
        for name, method in METHODS.items():
            answer = functools.partial(methods.respond, front, name)
            self._known[name] = Service(method.access, answer, is_public=method.access == PUBLIC)

    def find(self, method: str, authorization: bytes, remembered: RememberedKey) -> tuple[Service, KeyHolder | None]:
        """The service for a call, by its name and its token or key, and the client that has the key. Raises RpcError.

        `remembered` is the key that the connection showed last.
        Calls that infer are counted for their key when their message has come, which names the model; others here.
        """
        service = self._known.get(method) or self._native(method)
        access = service.access if service is not None else INFER
        if access == CONTROL and not self.front.access.is_controllable:
            raise self._refused(method, repository.OFF)
        holder = None
        if self.front.access.refuses(access, authorization):
            infers = service is not None and service.infers
            holder = self._admitted(Wanted(access, method), authorization, infers, remembered)
        if service is None:
            raise methods.refusal(method)
        return service, holder

    def _admitted(
        self, wanted: Wanted, authorization: bytes, infers: bool, remembered: RememberedKey
    ) -> KeyHolder | None:
        """Admit a call whose token came in a form that the dialect of the service declares, or by its key.

        Raises RpcError where it has neither, or the key refuses it.
        """
        forms, headers = self._token_forms(wanted.path), [(b"authorization", authorization)]
        line = RequestLine(b"POST", wanted.path.encode())
        # Not the authorization: `find` has refused it as a plain token. A form may still find a token in it.
        if not self.front.access.refuses_all(wanted.access, b"", forms, line, headers):
            return None
        holder = remembered.holder(wanted.access, authorization, forms, headers)
        if holder is None:
            raise NO_TOKEN.error()
        fault = holder.refusal(wanted)
        if fault is not None:
            raise refused(fault)
        # A call that infers is counted once its message names the model (`RpcCall.count_for`).
        if not infers:
            holder.take_short()
        return holder

    def _token_forms(self, method: str) -> tuple[TokenForm, ...]:
        route = self.front.paths.rpc_routes.get(method)
        return route.models.first.model.contract.token_forms if route is not None else ()

    async def _model_stream_infer(self, stream: BidiCall) -> None:
        await StreamInfer(self.front, self.open, stream).run()

    def _native(self, path: str) -> Service | None:
        """What answers a call of a service that a dialect brings."""
        route = self.front.paths.rpc_routes.get(path)
        if route is None:
            return None
        access, answer = route.method.access, route.method.answer
        if route.method.administer is not None:
            return Service(access, functools.partial(self._administered, route, route.method.administer))
        if answer is not None:
            model = (route.models.find("") or route.models.first).model
            return Service(access, lambda message, holder: answer(model, message), is_public=access == PUBLIC)
        if route.method.streams:
            return Service(access, answer_stream=functools.partial(self._streamed, route), infers=True, native=route)
        return Service(access, infers=True, native=route)

    async def _administered(
        self, route: RpcRoute, administer: Administer, message: bytes, holder: KeyHolder | None
    ) -> bytes:
        if self.front.administration is None:
            raise self._refused(route.path, repository.OFF)
        try:
            administration = self.front.administration(route.models.first.model.package.dialect)
            return await administer(reached_by(holder, administration), message)
        except RouteRefused as refusal:
            raise self._refused(route.path, refusal.fault) from None
        except ValueError:
            raise UNREADABLE.error() from None

    def _refused(self, path: str, fault: Fault) -> RpcError:
        """A fault in the words of the dialect that has this service, else in our own."""
        route = self.front.paths.rpc_routes.get(path)
        write = route.service.error if route is not None else None
        return RpcError(*write(fault)) if write is not None else refused(fault)

    async def _streamed(self, route: RpcRoute, stream: BidiCall) -> None:
        await StreamedAnswer(self.front, route, self.open, stream).run()

    async def _reflection(self, stream: BidiCall) -> None:
        services = {route.service.full_name: route.service for route in self.front.paths.rpc_routes.values()}
        files = descriptors.files(services.values())
        while (message := await stream.next()) is not None:
            try:
                await stream.write(reflection.respond(message.plain(), files))
            except ValueError:
                raise UNREADABLE.error() from None


def watched_service(body: bytes) -> str:
    """The service that a HealthCheckRequest names. Raises RpcError."""
    try:
        return named(body).name
    except ValueError:
        raise UNREADABLE.error() from None
