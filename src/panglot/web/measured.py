"""The counters of one process in the Prometheus text form."""

from __future__ import annotations

from collections.abc import Sequence

from panglot.metrics.counters import Gauge, merged
from panglot.web.front import Front
from panglot.web.models import Model


def own_metrics(front: Front, name: str) -> str:
    """What this process has counted, for all models or the one of this name."""
    model = front.models.get(name) if name else front.models.default
    if model is not None and model.metrics is front.metrics:
        text = measured(model, front.gauges())
    elif model is not None and name:
        text = measured(model)
    else:
        texts = [({"model": model.name, "version": model.version}, measured(model)) for model in front.models]
        text = merged([({}, front.metrics.render_server(front.gauges())), *texts])
    if front.access.keys is not None and not name:
        text += front.access.keys.metrics()
    return text


def measured(model: Model, more: Sequence[Gauge] = ()) -> str:
    """All counters of a model, with the gauges of its engine and the series of its platform."""
    text = model.metrics.render([*model.engine.gauges(), *more], model.contract.counters)
    return text if model.contract.metrics is None else text + model.contract.metrics(model)
