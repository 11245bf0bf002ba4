"""The models of a server, as other models call them."""

from __future__ import annotations

from typing import cast

from panglot.engine.engine import LocalEngine
from panglot.engine.made_calls import Callee
from panglot.web.models import Model, Models
from panglot.web.v2 import routes
from panglot.web.v2.routes import MADE_BY_MODELS
from panglot_worker.line import wire


class Callees:
    """Finds the models that can be called. The facts about them are computed once, until a model comes or goes."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._known: dict[tuple[str, str], Callee] = {}
        models.watch(self._known.clear)

    def find(self, name: str, version: str) -> Callee | None:
        """The model of a name, without a version the newest; None: there is none, or it takes no tensors."""
        known = self._known.get((name, version))
        if known is not None:
            return known
        model = self._models.get(name, version)
        callee = _callee(model) if model is not None else None
        if callee is not None:
            # Missing models are not stored: a script may ask for any number of names.
            self._known[name, version] = callee
        return callee


def _callee(model: Model) -> Callee | None:
    native = routes.native_route(model)
    if native is None:
        return None
    target = routes.target(model, native)
    metrics = model.metrics

    def count(status: int, seconds: float) -> None:
        metrics.requests[MADE_BY_MODELS, status] += 1
        metrics.latency[MADE_BY_MODELS].add(int(seconds * 1e6))

    return Callee(
        name=model.name,
        engine=cast(LocalEngine, model.engine),
        heads={False: routes.rpc_head(target, routes.GRPC), True: routes.rpc_head(target, routes.STREAM)},
        native=wire.Head(route=target.route, path=target.path),
        lane=native.lane,
        quota=model.quota,
        timeout=model.settings.timeout,
        max_body=model.settings.max_body,
        on_answer=count,
    )
