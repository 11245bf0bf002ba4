"""TorchServe's management API: what there is, and loading, scaling and unloading models of the server's folder."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.web.contract import ADMIN, CONTROL, AdminRoute, RouteRefused
from panglot.web.models import Model, ModelAdministration

ENDINGS = (".mar", ".tar.gz", ".tgz")
DEFAULT_TIMEOUT = 120.0
LISTED = 100


def pretty(value: Any, status: int = 200) -> Response:
    """An answer of the server's own, as the original writes it."""
    return Response(json.dumps(value, indent=2) + "\n", status, media_type="application/json")


def is_well(model: Model) -> bool:
    """Whether a model was loaded, and its workers do not die again and again."""
    return model.engine.state in states.SERVING or (bool(model.description) and model.engine.state == states.LOADING)


def _status(text: str, status: int = 200) -> Response:
    return pretty({"status": text}, status)


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.lstrip("-").isdecimal():
        raise RouteRefused(Fault(400, "bad_request", f"parameter {name} must be a whole number"))
    return int(text)


# What there is


def listing(administration: ModelAdministration, request: Request) -> Response:
    """GET /models: names and archives, a page of them."""
    limit = min(LISTED, max(1, _number(request, "limit", LISTED)))
    start = max(0, _number(request, "next_page_token", 0))
    newest = {model.name: model for model in administration.models()}
    entries = [{"modelName": name, "modelUrl": url(model)} for name, model in newest.items()]
    page = entries[start : start + limit]
    more = {"nextPageToken": str(start + limit)} if start + limit < len(entries) else {}
    return pretty({**more, "models": page})


def describing(administration: ModelAdministration, request: Request) -> Response:
    """GET /models/NAME[/VERSION]: one version; with `all`, every version."""
    name, version = request.path_params["model"], request.path_params.get("version", "")
    if version != "all":
        return pretty([described(administration.find(name, version))])
    administration.find(name)
    return pretty([described(model) for model in administration.models() if name in names(model)])


def names(model: Model) -> tuple[str, str]:
    return model.name, model.contract.model_name


def url(model: Model) -> str:
    """The archive of a model, or its folder."""
    package = model.package
    return package.archive.name if package.archive is not None else package.folder.name


def described(model: Model) -> dict[str, Any]:
    """A version as the original describes it."""
    settings, table = model.settings, model.package.options["config"]
    sizes = model.engine.sizes()[0]
    count = settings.workers
    return {
        "modelName": model.name,
        "modelVersion": str(model.package.options["version"]),
        "modelUrl": url(model),
        "runtime": "python",
        "minWorkers": count.least or sizes["wanted"],
        "maxWorkers": count.most or sizes["wanted"],
        "batchSize": settings.max_batch,
        "maxBatchDelay": int(settings.max_wait_ms),
        "responseTimeout": int(settings.timeout),
        "startupTimeout": int(settings.load_timeout),
        "maxRetryTimeoutInSec": table.get("maxRetryTimeoutInSec", 300),
        "clientTimeoutInMills": table.get("clientTimeoutInMills", 0),
        "parallelType": table.get("parallelType", ""),
        "parallelLevel": 1,
        "deviceType": "gpu" if settings.device.startswith("cuda") else "cpu",
        "continuousBatching": False,
        "useJobTicket": False,
        "useVenv": settings.install,
        "stateful": False,
        "loadedAtStartup": True,
        "workers": [_worker(worker) for worker in model.engine.workers()],
        "jobQueueStatus": {"remainingCapacity": settings.queue, "pendingRequests": 0},
    }


def _worker(worker: dict[str, Any]) -> dict[str, Any]:
    ready = worker.get("state") == states.READY
    return {
        "id": str(9000 + int(worker.get("index", 0))),
        "status": "READY" if ready else "UNLOADING",
        "gpu": False,
        "pid": worker.get("pid") or -1,
    }


# What changes


async def register(administration: ModelAdministration, request: Request) -> Response:
    """POST /models?url=: serve an archive of the server's folder. Addresses and other paths are refused."""
    given = request.query_params.get("url", "")
    if not given:
        raise RouteRefused(Fault(400, "bad_request", "Parameter url is required."))
    if "://" in given or PurePosixPath(given).name != given:
        problem = "only archives that lie in the server's folder of models are registered: give the name of the file"
        raise RouteRefused(Fault(400, "bad_request", problem))
    name = next((given[: -len(ending)] for ending in ENDINGS if given.endswith(ending)), given)
    wanted = request.query_params.get("model_name", name)
    if any(wanted in names(model) for model in administration.models()):
        problem = f"Model version {request.query_params.get('version', '1.0')} is already registered for model {wanted}"
        raise RouteRefused(Fault(409, "not_loaded", problem))
    await administration.load(name)
    model = administration.find(name)
    workers = _number(request, "initial_workers", 0)
    version = model.package.options["version"]
    count = workers or model.engine.sizes()[0]["wanted"]
    done = f'Model "{model.name}" Version: {version} registered with {count} initial workers'
    if workers:
        await administration.scale(model, workers, workers, DEFAULT_TIMEOUT)
    return _status(done)


async def scale(administration: ModelAdministration, request: Request) -> Response:
    """PUT /models/NAME[/VERSION]?min_worker=&max_worker=&synchronous=&timeout=."""
    model = administration.find(request.path_params["model"], request.path_params.get("version", ""))
    least = _number(request, "min_worker", 1)
    most = _number(request, "max_worker", least)
    if most < least:
        raise RouteRefused(Fault(400, "bad_request", "max_worker cannot be less than min_worker."))
    waits = request.query_params.get("synchronous", "false").lower() == "true"
    wait = min(float(_number(request, "timeout", int(DEFAULT_TIMEOUT))), DEFAULT_TIMEOUT) if waits else 0.0
    enough = await administration.scale(model, least, most, wait)
    if waits and enough:
        return _status(f"Workers scaled to {least} for model: {model.name}")
    return _status("Processing worker updates...", 202)


async def unregister(administration: ModelAdministration, request: Request) -> Response:
    """DELETE /models/NAME[/VERSION]."""
    name = request.path_params["model"]
    administration.find(name, request.path_params.get("version", ""))
    await administration.unload(name)
    return _status(f'Model "{name}" unregistered')


def set_default(administration: ModelAdministration, request: Request) -> Response:
    """PUT /models/NAME/VERSION/set-default: the newest version is the default, and the only one that can be."""
    name, version = request.path_params["model"], request.path_params["version"]
    model = administration.find(name, version)
    if model is not administration.find(name):
        problem = "the newest version of a model is its default here, and no other can be"
        raise RouteRefused(Fault(403, "not_loaded", problem))
    return _status(f'Default version successfully updated for model "{name}" to "{version}"')


ROUTES = (
    AdminRoute("/models", listing, ("GET",), ADMIN),
    AdminRoute("/models/{model}", describing, ("GET",), ADMIN),
    AdminRoute("/models/{model}/{version}", describing, ("GET",), ADMIN),
    AdminRoute("/models", register, ("POST",), CONTROL),
    AdminRoute("/models/{model}", scale, ("PUT",), CONTROL),
    AdminRoute("/models/{model}/{version}", scale, ("PUT",), CONTROL),
    AdminRoute("/models/{model}", unregister, ("DELETE",), CONTROL),
    AdminRoute("/models/{model}/{version}", unregister, ("DELETE",), CONTROL),
    AdminRoute("/models/{model}/{version}/set-default", set_default, ("PUT",), CONTROL),
)
