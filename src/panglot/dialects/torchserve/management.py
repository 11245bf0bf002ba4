"""TorchServe's management API: to list, describe, load, scale and unload models of the server's folder.

Each function takes the parameters of a request by name, from HTTP or gRPC, and returns the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.web.contract import ADMIN, CONTROL, AdminRoute, RouteRefused
from panglot.web.models import Model, ModelAdministration
from panglot_worker.line import wire

ENDINGS = (".mar", ".tar.gz", ".tgz")
DEFAULT_TIMEOUT = 120.0
LISTED = 100
NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
LARGEST = 1 << 31
FOLDER_ALONE = " (only archives that lie in the server's folder of models are registered: give the name of the file)"
OF_THE_ARCHIVE = {
    "handler": "handler in the manifest", "batch_size": "batchSize in model-config.yaml",
    "max_batch_delay": "maxBatchDelay in model-config.yaml", "response_timeout": "responseTimeout in model-config.yaml",
    "startup_timeout": "startupTimeout in model-config.yaml",
}  # fmt: skip
"""Parameters of a registration on TorchServe, and the place of the same setting here."""
DESCRIBE = "/describe"
"""The route of requests that ask a handler to describe its model."""
Parameters = Mapping[str, str]


class Said(NamedTuple):
    """The answer of a function of the API: a sentence, or a value; and the status of HTTP."""

    value: Any
    status: int = 200

    @property
    def text(self) -> str:
        """The answer as a client of gRPC gets it."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, indent=2)


Function = Callable[[ModelAdministration, Parameters], Awaitable[Said]]


def pretty(value: Any, status: int = 200) -> Response:
    """An answer of the server's own, as the original writes it."""
    return Response(json.dumps(value, indent=2) + "\n", status, media_type="application/json")


def over_http(function: Function) -> Callable[[ModelAdministration, Request], Awaitable[Response]]:
    """A function of the API as a route. Its parameters come from the query and from the path, which wins."""

    async def answer(administration: ModelAdministration, request: Request) -> Response:
        said = await function(administration, {**request.query_params, **request.path_params})
        value = {"status": said.value} if isinstance(said.value, str) else said.value
        return pretty(value, said.status)

    return answer


def is_well(model: Model) -> bool:
    """Whether a model was loaded, and its workers do not die again and again."""
    # A description is there once a worker was ready: then LOADING means that the next worker is on its way.
    return model.engine.state in states.SERVING or (bool(model.description) and model.engine.state == states.LOADING)


def _number(parameters: Parameters, name: str, default: int) -> int:
    """A whole number; as in the original, the default where the text is no number of 32 bits."""
    text = parameters.get(name, "")
    number = int(text) if NUMBER.fullmatch(text) else default
    return number if -LARGEST <= number < LARGEST else default


def _flag(parameters: Parameters, name: str) -> bool:
    return parameters.get(name, "false").lower() == "true"


def _found(administration: ModelAdministration, parameters: Parameters) -> Model:
    """The model that the parameters name. Raises RouteRefused."""
    return administration.find(parameters.get("model_name", ""), parameters.get("model_version", ""))


# What there is


async def listing(administration: ModelAdministration, parameters: Parameters) -> Said:
    """GET /models: names and archives, a page of them."""
    limit = min(LISTED, max(1, _number(parameters, "limit", LISTED)))
    start = max(0, _number(parameters, "next_page_token", 0))
    # `models` has the oldest version of each name first, so the newest one stays in the table.
    newest = {model.name: model for model in administration.models()}
    entries = [{"modelName": name, "modelUrl": url(model)} for name, model in newest.items()]
    page = entries[start : start + limit]
    more = {"nextPageToken": str(start + limit)} if start + limit < len(entries) else {}
    return Said({**more, "models": page})


async def describing(administration: ModelAdministration, parameters: Parameters) -> Said:
    """GET /models/NAME[/VERSION]: one version, with `customized` also by its handler; with `all`, every version."""
    name, version = parameters.get("model_name", ""), parameters.get("model_version", "")
    if version == "all":
        administration.find(name)
        models = [model for model in administration.models() if name in model.names]
        return Said([described(model, await administration.workers(model)) for model in models])
    model = administration.find(name, version)
    description = described(model, await administration.workers(model))
    if _flag(parameters, "customized"):
        head = wire.Head(route=DESCRIBE.encode(), path=DESCRIBE.encode(), method=b"GET")
        description["customizedMetadata"] = _as_object(await administration.ask(model, head))
    return Said([description])


def _as_object(answer: bytes) -> Any:
    """The description that a handler gives of its model. As in the original, only an object counts."""
    try:
        said = json.loads(answer)
    except ValueError:
        said = None
    return said if isinstance(said, dict) else {}


def url(model: Model) -> str:
    """The archive of a model, or its folder."""
    package = model.package
    return package.archive.name if package.archive is not None else package.folder.name


def described(model: Model, workers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A version as the original describes it."""
    settings, table = model.settings, model.package.options["config"]
    count = settings.workers
    return {
        "modelName": model.name,
        "modelVersion": str(model.package.options["version"]),
        "modelUrl": url(model),
        "runtime": "python",
        "minWorkers": count.least or len(workers),
        "maxWorkers": count.most or len(workers),
        "batchSize": settings.max_batch,
        "maxBatchDelay": int(settings.max_wait_ms),
        "responseTimeout": int(settings.timeout),
        "startupTimeout": int(settings.load_timeout),
        "maxRetryTimeoutInSec": table.get("maxRetryTimeoutInSec", 300),
        "clientTimeoutInMills": table.get("clientTimeoutInMills", 0),
        "parallelType": table.get("parallelType", ""),
        "parallelLevel": 0,
        "deviceType": "gpu" if settings.device.startswith("cuda") else "cpu",
        "continuousBatching": False,
        "useJobTicket": False,
        "useVenv": settings.install,
        "stateful": False,
        "sequenceMaxIdleMSec": 0,
        "sequenceTimeoutMSec": 0,
        "maxNumSequence": 0,
        "maxSequenceJobQueueSize": 0,
        "loadedAtStartup": True,
        "workers": [_worker(worker) for worker in workers],
        "jobQueueStatus": {"remainingCapacity": settings.queue, "pendingRequests": 0},
    }


def _worker(worker: Mapping[str, Any]) -> dict[str, Any]:
    ready = worker.get("state") == states.READY
    since = datetime.now(tz=UTC) - timedelta(seconds=float(worker.get("seconds", 0)))
    return {
        # The original's workers have their ports as ids, from 9000 on.
        "id": str(9000 + int(worker.get("index", 0))),
        "startTime": since.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "status": "READY" if ready else "UNLOADING",
        "memoryUsage": 0,
        "pid": worker.get("pid") or -1,
        "gpu": False,
        "gpuUsage": "N/A",
    }


# What changes


async def register(administration: ModelAdministration, parameters: Parameters) -> Said:
    """POST /models?url=: serve an archive of the server's folder. Addresses and other paths are refused."""
    given = parameters.get("url", "")
    if not given:
        raise RouteRefused(Fault(400, "bad_request", "Parameter url is required."))
    if "://" in given or PurePosixPath(given).name != given:
        problem = f"Relative path is not allowed in url: {given}" if ".." in given else f"Model not found at: {given}"
        raise RouteRefused(Fault(404, "no_model", f"{problem}{'' if '..' in given else FOLDER_ALONE}"))
    name = next((given[: -len(ending)] for ending in ENDINGS if given.endswith(ending)), given)
    wanted = parameters.get("model_name") or name
    served = next((model for model in administration.models() if wanted in model.names), None)
    if served is not None:
        problem = f"Model version {served.package.options['version']} is already registered for model {wanted}"
        raise RouteRefused(Fault(409, "not_loaded", problem))
    _refuse_changes(parameters)
    other_name = _in_the_archive("model_name", f"call the file {wanted}{given[len(name) :]}")
    if any(name in model.names for model in administration.models()):
        raise other_name
    model = await _loaded(administration, name, given)
    # The name is in the archive's manifest, which is known only now: nothing of a refused registration stays.
    if wanted not in model.names:
        await administration.unload(model.name)
        raise other_name
    workers = _number(parameters, "initial_workers", 0)
    version = model.package.options["version"]
    count = workers or len(await administration.workers(model))
    if workers:
        await administration.scale(model, workers, workers, DEFAULT_TIMEOUT)
    return Said(f'Model "{model.name}" Version: {version} registered with {count} initial workers')


def _refuse_changes(parameters: Parameters) -> None:
    """Refuse parameters that differ from the archive: how a model is served is said there. Raises RouteRefused."""
    for name, key in OF_THE_ARCHIVE.items():
        if parameters.get(name):
            raise _in_the_archive(name, f"{key} of the archive, or panglot.toml in the server's folder")


def _in_the_archive(parameter: str, fix: str) -> RouteRefused:
    problem = f"{parameter} cannot be sent: models and their settings come from the server's folder (fix: {fix})"
    return RouteRefused(Fault(400, "bad_request", problem))


async def _loaded(administration: ModelAdministration, name: str, given: str) -> Model:
    """The model of an archive, once it is served. Raises RouteRefused."""
    try:
        await administration.load(name)
    except RouteRefused as refused:
        # The folder has it, and it does not load, or the client's key is not for it: the client gets the reason. Else
        # it is not found.
        if refused.fault.status == 403 or name in administration.absent():
            raise
        problem = f"Model not found at: {given} ({refused.fault.message})"
        raise RouteRefused(Fault(404, "no_model", problem)) from None
    return administration.find(name)


async def scale(administration: ModelAdministration, parameters: Parameters) -> Said:
    """PUT /models/NAME[/VERSION]?min_worker=&max_worker=&synchronous=&timeout=."""
    model = _found(administration, parameters)
    least = _number(parameters, "min_worker", 1)
    most = _number(parameters, "max_worker", least)
    if most < least:
        raise RouteRefused(Fault(400, "bad_request", "max_worker cannot be less than min_worker."))
    waits = _flag(parameters, "synchronous")
    wait = min(float(_number(parameters, "timeout", int(DEFAULT_TIMEOUT))), DEFAULT_TIMEOUT) if waits else 0.0
    enough = await administration.scale(model, least, most, wait)
    if waits and enough:
        return Said(f"Workers scaled to {least} for model: {model.name}")
    return Said("Processing worker updates...", 202)


async def unregister(administration: ModelAdministration, parameters: Parameters) -> Said:
    """DELETE /models/NAME[/VERSION]: an archive goes. Versions of one folder go together."""
    model, version = _found(administration, parameters), parameters.get("model_version", "")
    if version and any(other.name == model.name and other is not model for other in administration.models()):
        problem = f"the versions of {model.name} lie in one folder and go together: name none"
        raise RouteRefused(Fault(400, "bad_request", problem))
    await administration.unload(model.name)
    return Said(f'Model "{parameters["model_name"]}" unregistered')


async def set_default(administration: ModelAdministration, parameters: Parameters) -> Said:
    """PUT /models/NAME/VERSION/set-default: this version answers requests that name none."""
    name, version = parameters.get("model_name", ""), parameters.get("model_version", "")
    model = _found(administration, parameters)
    administration.prefer(model)
    return Said(f'Default version successfully updated for model "{name}" to "{version}"')


ONE, VERSION = "/models/{model_name}", "/models/{model_name}/{model_version}"
ROUTES = (
    AdminRoute("/models", over_http(listing), ("GET",), ADMIN),
    AdminRoute(ONE, over_http(describing), ("GET",), ADMIN),
    AdminRoute(VERSION, over_http(describing), ("GET",), ADMIN),
    AdminRoute("/models", over_http(register), ("POST",), CONTROL),
    AdminRoute(ONE, over_http(scale), ("PUT",), CONTROL),
    AdminRoute(VERSION, over_http(scale), ("PUT",), CONTROL),
    AdminRoute(ONE, over_http(unregister), ("DELETE",), CONTROL),
    AdminRoute(VERSION, over_http(unregister), ("DELETE",), CONTROL),
    AdminRoute(f"{VERSION}/set-default", over_http(set_default), ("PUT",), CONTROL),
)
