"""The front's own answers about its models by the Open Inference Protocol, for REST and gRPC alike."""

from __future__ import annotations

from typing import Any

from panglot import __version__
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.web.models import UNLOADED, Model, Models
from panglot.web.v2.routes import START
from panglot_worker.line.description import TensorDescription

SERVER = "panglot"
EXTENSIONS = [
    "binary_tensor_data", "model_configuration", "statistics", "model_repository", "parameters",
]  # fmt: skip
NO_SHARED_MEMORY = "this server uses no shared memory of its clients: send tensors in the request"
NO_SETTINGS = "this server's settings are not changed by calls: see its flags"
"""Why further calls of Triton are refused."""
PATHS = (
    "there is no such path; a model is at /v2/models/NAME or /v2/models/NAME/versions/VERSION, and behind that are "
    "/infer, /generate, /generate_stream, /ready, /config and /stats"
)

WITHHELD = "it could not be loaded; the server's log says why"

ANYTHING = [{"name": "input", "datatype": "BYTES", "shape": [1]}]
"""The inputs of a script that does not describe its tensors."""


class Missing(Exception):
    """There is no such model, version, or it cannot say anything yet; `fault` is the answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def find(models: Models, name: str, version: str = "") -> Model:
    """The model that is meant. Raises Missing."""
    model = models.get(name, version)
    if model is not None:
        return model
    there = models.versions(name)
    if not there and name in models.loading():
        raise Missing(is_loading(name))
    if there:
        what = f"model '{name[:200]}' has no version '{version[:200]}'; it has {', '.join(there)}"
    else:
        what = f"there is no model '{name[:200]}'; there is {', '.join(models.names) or 'none'}"
    raise Missing(Fault(404, "not_found", what))


def is_loading(name: str) -> Fault:
    """The fault of requests to a model that is being loaded for the first time."""
    return Fault(503, "loading", f"model '{name[:200]}' is still loading; try again later", 2)


def unknown(models: Models, path: str) -> Fault | None:
    """Why a path below a model leads nowhere, where it names one that is not there."""
    if not path.startswith(START):
        return None
    name, _, rest = path[len(START) :].partition("/")
    version = rest[len("versions/") :].partition("/")[0] if rest.startswith("versions/") else ""
    try:
        find(models, name, version)
    except Missing as missing:
        return missing.fault
    return None


def nowhere(models: Models, path: str) -> Fault | None:
    """Why a path of this protocol leads nowhere; None where the path is of another."""
    if not path.startswith("/v2/"):
        return None
    first = path.split("/", 3)[2]
    if first in ("systemsharedmemory", "cudasharedmemory"):
        return Fault(501, "not_supported", NO_SHARED_MEMORY)
    if first == "logging" or path.endswith("/trace/setting"):
        return Fault(501, "not_supported", NO_SETTINGS)
    return unknown(models, path) or Fault(404, "not_found", PATHS)


def is_ready(model: Model) -> bool:
    """Whether the model answers requests; one that sleeps does, since they wake it."""
    return model.engine.state in states.SERVING


def server() -> dict[str, Any]:
    return {"name": SERVER, "version": __version__, "extensions": EXTENSIONS}


def tensors(model: Model) -> TensorDescription:
    """The tensors of a model, as its worker described them. Raises Missing while it loads for the first time."""
    tensors = model.api.get("tensors")
    if tensors is None:
        raise Missing(Fault(503, "loading", f"model '{model.name}' is not ready yet", 2))
    declared = model.package.options.get("tensors")
    if declared and declared["inputs"] and tensors["inputs"] == ANYTHING:
        # The script takes whatever comes; its configuration knows more.
        rows = declared["max_batch_size"] > 0
        return {
            **tensors,
            "rows": rows,
            "inputs": declared["inputs"],
            "outputs": declared["outputs"] or tensors["outputs"],
        }
    if declared and declared["max_batch_size"] and all(tensor["shape"][:1] == [-1] for tensor in tensors["inputs"]):
        # Rows are its clients' word for the first size, whether or not requests share runs.
        return {**tensors, "rows": True}
    return tensors


def metadata(models: Models, model: Model) -> dict[str, Any]:
    """The description of a model: its versions, inputs and outputs. Raises Missing."""
    about = tensors(model)
    return {
        "name": model.name,
        "versions": list(models.versions(model.name)),
        "platform": about["platform"],
        "inputs": about["inputs"],
        "outputs": about["outputs"],
    }


def config(model: Model) -> dict[str, Any]:
    """The configuration of a model as Triton words it. Raises Missing."""
    about = tensors(model)
    rows, most = bool(about["rows"]), model.settings.max_batch
    declared = model.package.options.get("tensors", {}).get("max_batch_size", 0)
    config = {
        "name": model.name,
        "platform": about["platform"],
        "backend": SERVER,
        "max_batch_size": max(most, declared) if rows else 0,
        "input": [_configured(tensor, rows) for tensor in about["inputs"]],
        "output": [_configured(tensor, rows) for tensor in about["outputs"]],
        "model_transaction_policy": {"decoupled": bool(model.api.get("streams"))},
    }
    if rows and most > 1:
        config["dynamic_batching"] = {}
    return config


def _configured(tensor: dict[str, Any], rows: bool) -> dict[str, Any]:
    """A tensor without the size that counts rows; a tensor without rows, such as labels of columns, stays whole."""
    kind = "STRING" if tensor["datatype"] == "BYTES" else tensor["datatype"]
    counts = rows and tensor["shape"][:1] == [-1]
    return {"name": tensor["name"], "data_type": f"TYPE_{kind}", "dims": tensor["shape"][1 if counts else 0 :]}


def state(models: Models) -> str:
    """Whether the server is ready. Of several models one that fails later on does not make it unready."""
    several = len(models) > 1
    of_models = [model.engine.state for model in models if not several or not model.description]
    return next((state for state in of_models if state not in states.SERVING), states.READY)


def index(models: Models, only_ready: bool = False, why: bool = False) -> list[dict[str, str]]:
    """Every version of every model, and whether it answers; and the models that could be loaded.

    Only with `why` it tells why a model could not be loaded: such sentences name files and programs of this machine.
    """
    rows = []
    for model in models:
        ready = is_ready(model)
        if ready or not only_ready:
            state = "READY" if ready else "LOADING" if model.engine.state == states.LOADING else "UNAVAILABLE"
            # Clients of Triton use what is READY. A model that sleeps is, and says so as the reason.
            reason = model.engine.state if ready and model.engine.state != states.READY else ""
            rows.append({"name": model.name, "version": model.version, "state": state, "reason": reason})
    absent, loading = {} if only_ready else models.absent(), models.loading()
    for name, reason in absent.items():
        state, shown = ("LOADING", "") if name in loading else ("UNAVAILABLE", reason)
        shown = shown if why or shown in ("", UNLOADED) else WITHHELD
        rows.append({"name": name, "version": "", "state": state, "reason": shown})
    return rows
