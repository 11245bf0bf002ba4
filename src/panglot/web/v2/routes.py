"""The routes by which the Open Inference Protocol reaches a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from panglot.web.contract import InferRoute, v2_error
from panglot.web.models import Model, Models
from panglot_worker.line import wire

REST, GRPC, STREAM = b"rest", b"grpc", b"stream"
"""The forms of a request with tensors, as its worker gets them."""
FORMS = {"infer": REST, "generate": b"generate", "generate_stream": b"generate_stream"}
"""The forms of requests over HTTP, by the last segment of their path."""
RPC_NAMES = {GRPC: "grpc ModelInfer", STREAM: "grpc ModelStreamInfer"}
"""The names under which calls over gRPC are counted."""
MADE_BY_MODELS = "another model"
"""The name under which calls of other models are counted."""
NAMES = {ending: f"/v2/models/{{model}}/{ending}" for ending in FORMS}
"""The names under which calls over HTTP are counted, by the last segment of their path."""
START = "/v2/models/"


class TensorTarget(NamedTuple):
    """What the worker of a model gets for a request with tensors: route and path are those of a native request."""

    model: bytes
    version: bytes
    route: bytes
    path: bytes
    form: bytes = REST


def native_route(model: Model) -> InferRoute | None:
    """The route of a model that requests with tensors are taken for: the first that takes a body in memory."""
    routes = (route for route in model.contract.routes if "POST" in route.methods and not route.spooled)
    return next((route for route in routes if not route.without_body), None)


def target(model: Model, native: InferRoute) -> TensorTarget:
    path, route = native.sample(model.name, model.version), native.worker_route
    return TensorTarget(model.name.encode("utf-8", "replace"), model.version.encode(), route.encode(), path.encode())


def infer_route(native: InferRoute, path: str, name: str = NAMES["infer"]) -> InferRoute:
    """The route for tensors beside a model's own: its requests may share batches with those."""
    return dataclasses.replace(
        native, path=path, name=name, methods=("POST",), model=None, target="", takes=(), gives="", error=v2_error,
        request=None, response=None, job=None,
    )  # fmt: skip


class RpcTarget(NamedTuple):
    """Where an inference over gRPC goes, which names its model in the message."""

    model: Model
    target: TensorTarget
    forms: dict[bytes, InferRoute]
    """The route by form; it has no path, and its name is what the call is counted as."""
    heads: dict[bytes, bytes]
    """By form: what the worker gets behind the request's id, of a call that is neither traced nor compressed."""


def rpc_head(target: TensorTarget, form: bytes) -> wire.Head:
    return wire.Head(route=target.route, path=target.path, form=form, model=target.model, version=target.version)


def rpc_targets(models: Models) -> dict[tuple[str, str], RpcTarget]:
    """By name and version; the newest of each name by no version too."""
    targets = {}
    for model in models:
        native = native_route(model)
        if native is not None:
            forms = {form: dataclasses.replace(infer_route(native, ""), name=name) for form, name in RPC_NAMES.items()}
            tensors = target(model, native)
            heads = {form: rpc_head(tensors, form).pack() for form in forms}
            rpc = RpcTarget(model, tensors, forms, heads)
            targets[model.name, model.version] = rpc
            if models.get(model.name) is model:
                targets[model.name, ""] = rpc
    return targets


def routes(models: Models) -> Iterator[tuple[Model, InferRoute, TensorTarget]]:
    """The routes of every version of every model, and of each name the newest by no version too."""
    for model in models:
        native = native_route(model)
        if native is None:
            continue
        ways = [f"/versions/{quote(model.version)}"]
        if models.get(model.name) is model:
            ways.append("")
        sayable = model.name.encode("utf-8", "replace").decode()
        # Also as it stands in a URL: a model with `raw_paths` has all paths matched undecoded.
        for name in {sayable, quote(sayable)}:
            for way in ways:
                for ending, form in FORMS.items():
                    route = infer_route(native, f"{START}{name}{way}/{ending}", NAMES[ending])
                    yield model, route, target(model, native)._replace(form=form)
