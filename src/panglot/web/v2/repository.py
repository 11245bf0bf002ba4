"""Loading and unloading models by the Open Inference Protocol's repository calls, where the server allows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.errors import StartError
from panglot.web.contract import CONTROL, Page, v2_error
from panglot.web.front import Front
from panglot.web.models import Repository
from panglot.web.v2 import metadata

OFF = Fault(403, "no_admin", "this server loads and unloads no models by requests (fix: start it with --admin)")
IGNORED = ("unload_dependents",)
"""Parameters that clients of Triton send along, and that mean nothing here."""


class NotChanged(metadata.Missing):
    """A repository call that cannot be carried out; `fault` is the answer."""


async def load(front: Front, name: str) -> None:
    """Load a model, or load it anew. Raises NotChanged."""
    await _carry_out(front, lambda repository: repository.load(name))


async def unload(front: Front, name: str) -> None:
    """Unload all versions of a model. Raises NotChanged."""
    await _carry_out(front, lambda repository: repository.unload(name))


async def _carry_out(front: Front, call: Callable[[Repository], Awaitable[None]]) -> None:
    if front.repository is None:
        raise NotChanged(OFF)
    if front.draining:
        raise NotChanged(Fault(503, "draining", "the server is stopping", 1))
    try:
        await call(front.repository)
    except StartError as error:
        raise NotChanged(Fault(400, "not_loaded", error.sentence())) from None


def _page(action: Callable[[Front, str], Awaitable[None]]) -> Callable[[Front, Request], Awaitable[Response]]:
    async def respond(front: Front, request: Request) -> Response:
        try:
            _check(await request.body())
            await action(front, request.path_params["model"])
        except NotChanged as refused:
            answer = v2_error(refused.fault, "")
            return Response(answer.body, answer.status, media_type="application/json")
        return Response(b"{}", media_type="application/json")

    return respond


def _check(body: bytes) -> None:
    """Refuse a body that wants more than the folder has. Raises NotChanged."""
    try:
        parameters = orjson.loads(body or b"{}").get("parameters") or {}
        names = [str(name) for name in parameters]
    except (ValueError, AttributeError, TypeError):
        raise NotChanged(Fault(400, "bad_request", "the body is no JSON object; it may be empty")) from None
    check_parameters(names)


def check_parameters(names: list[str]) -> None:
    """Refuse what would change a model besides its folder. Raises NotChanged."""
    unknown = [name for name in names if name not in IGNORED]
    if unknown:
        message = f"'{unknown[0][:100]}' cannot be sent: models and their configuration come from the server's folder"
        raise NotChanged(Fault(400, "bad_request", message))


PAGES = (
    Page("/v2/repository/models/{model}/load", CONTROL, _page(load), methods=("POST",)),
    Page("/v2/repository/models/{model}/unload", CONTROL, _page(unload), methods=("POST",)),
)
