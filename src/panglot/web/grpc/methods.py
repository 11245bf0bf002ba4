"""The calls of gRPC that the front itself answers: all but inference. Each declares who may make it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

from panglot.engine import interface as states
from panglot.web.access.keys import KeyHolder
from panglot.web.contract import ADMIN, CONTROL, INFER, PUBLIC
from panglot.web.front import Front
from panglot.web.grpc import messages
from panglot.web.grpc.messages import named, number
from panglot.web.grpc.statuses import INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, RpcError, refused
from panglot.web.v2 import metadata, repository
from panglot.web.v2.statistics import statistics

SERVICE = "inference.GRPCInferenceService"
HEALTH = "grpc.health.v1.Health"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
REFUSED = {
    **dict.fromkeys((
        f"{kind}SharedMemory{what}" for kind in ("System", "Cuda") for what in ("Status", "Register", "Unregister")
    ), metadata.NO_SHARED_MEMORY),
    "TraceSetting": metadata.NO_SETTINGS,
    "LogSettings": metadata.NO_SETTINGS,
}  # fmt: skip
"""Calls of Triton that are not answered, with why."""


class Method(NamedTuple):
    """A call with one message in and one out."""

    access: str
    answer: Callable[[Front, bytes], bytes | Coroutine[Any, Any, bytes]]
    model_field: int = 0
    """The field of the message that names the model which the call is about; 0: it is about none, or anyone may."""


def _is_ready(front: Front) -> bool:
    return not front.draining and metadata.state(front.models) == states.READY


def _model_ready(front: Front, body: bytes) -> bytes:
    """Whether a model answers. One that is not there does not; clients expect no failure."""
    model = front.models.get(*named(body))
    return number(1, model is not None and metadata.is_ready(model))


def _metadata(front: Front, body: bytes) -> bytes:
    return messages.metadata(metadata.metadata(front.models, metadata.find(front.models, *named(body))))


def _config(front: Front, body: bytes) -> bytes:
    return messages.config(metadata.config(metadata.find(front.models, *named(body))))


async def _statistics(front: Front, body: bytes) -> bytes:
    name, version = named(body)
    models = [metadata.find(front.models, name, version)] if name else list(front.models)
    return messages.statistics(await asyncio.gather(*(statistics(front, model) for model in models)))


def _index(front: Front, body: bytes) -> bytes:
    return messages.index(metadata.index(front.models, messages.flag(2, body)))


async def _load(front: Front, body: bytes) -> bytes:
    await repository.load(front, _asked_for(body))
    return b""


async def _unload(front: Front, body: bytes) -> bytes:
    await repository.unload(front, _asked_for(body))
    return b""


def _asked_for(body: bytes) -> str:
    """The model that a repository call names, in field 2. Raises NotChanged where it sends a configuration along."""
    repository.check_parameters(messages.keys(3, body))
    # `named` calls field 2 the version; in these messages it is the model.
    return named(body).version


def _check(front: Front, body: bytes) -> bytes:
    return health(front, named(body).name)


def health(front: Front, service: str) -> bytes:
    """Whether a service is served: ours, or a model by its name. Raises RpcError for any other."""
    native = (route.service.full_name for route in front.paths.rpc_routes.values())
    if service in ("", SERVICE, HEALTH, *native):
        return number(1, SERVING if _is_ready(front) else NOT_SERVING)
    model = front.models.get(service)
    if model is None:
        raise RpcError(NOT_FOUND, f"there is no service '{service[:200]}'")
    return number(1, SERVING if metadata.is_ready(model) else NOT_SERVING)


def watched(front: Front, service: str) -> bytes:
    """The same for a call that watches: a service that is not there may be loaded later, so it is no error."""
    try:
        return health(front, service)
    except RpcError:
        return number(1, SERVICE_UNKNOWN)


METHODS = {
    f"/{SERVICE}/ServerLive": Method(PUBLIC, lambda front, body: number(1, 1)),
    f"/{SERVICE}/ServerReady": Method(PUBLIC, lambda front, body: number(1, _is_ready(front))),
    f"/{SERVICE}/ModelReady": Method(PUBLIC, _model_ready),
    f"/{SERVICE}/ServerMetadata": Method(INFER, lambda front, body: messages.server(metadata.server())),
    f"/{SERVICE}/ModelMetadata": Method(INFER, _metadata, 1),
    f"/{SERVICE}/ModelConfig": Method(INFER, _config, 1),
    f"/{SERVICE}/ModelStatistics": Method(ADMIN, _statistics, 1),
    f"/{SERVICE}/RepositoryIndex": Method(ADMIN, _index),
    f"/{SERVICE}/RepositoryModelLoad": Method(CONTROL, _load, 2),
    f"/{SERVICE}/RepositoryModelUnload": Method(CONTROL, _unload, 2),
    f"/{HEALTH}/Check": Method(PUBLIC, _check),
}


def respond(front: Front, method: str, body: bytes, holder: KeyHolder | None) -> bytes | Coroutine[Any, Any, bytes]:
    """The answer to a call that is no inference, at once where that can be. Raises RpcError.

    `holder` is the client, where it has a key: the key must reach the model that the call is about.
    """
    _, answer, model_field = METHODS[method]
    if holder is not None and model_field:
        with _errors_of_rpc():
            _check_model(holder, named(body)[model_field - 1])
    if inspect.iscoroutinefunction(answer):
        return _later(front, answer, body)
    with _errors_of_rpc():
        return answer(front, body)


def _check_model(holder: KeyHolder, name: str) -> None:
    fault = holder.forbids_model(name) if name else None
    if fault is not None:
        raise refused(fault)


async def _later(front: Front, answer: Callable[[Front, bytes], Any], body: bytes) -> bytes:
    with _errors_of_rpc():
        return bytes(await answer(front, body))


@contextlib.contextmanager
def _errors_of_rpc() -> Iterator[None]:
    try:
        yield
    except metadata.Missing as missing:
        raise refused(missing.fault) from None
    except ValueError:
        raise RpcError(INVALID_ARGUMENT, "the message cannot be read") from None


def refusal(method: str) -> RpcError:
    """Why a call that nothing answers is refused."""
    service, _, name = method.strip("/").partition("/")
    if service == SERVICE and name in REFUSED:
        return RpcError(UNIMPLEMENTED, REFUSED[name])
    return RpcError(UNIMPLEMENTED, f"there is no method {method[:200]}")
