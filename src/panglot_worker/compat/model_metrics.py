"""`context.metrics` of Multi Model Server and its successors: the values that a handler measures, for /metrics."""

from __future__ import annotations

import enum
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

TIME_UNITS, SIZE_UNITS = ("ms", "s"), ("MB", "kB", "GB", "B")


class MetricsCacheTypeError(TypeError):
    """An argument of the wrong type."""


class MetricsCacheKeyError(KeyError):
    """A metric that nobody has added."""


class MetricsCacheValueError(ValueError):
    """A unit that the metric does not have."""


class MetricTypes(enum.Enum):
    """The types of a metric: a new value is added, replaces the last, or is counted in a histogram."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Dimension:
    """A label of a metric."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return "%s:%s" % (self.name, self.value)

    def to_dict(self) -> Dict[str, Any]:
        return {"Name": self.name, "Value": self.value}


class Measured(NamedTuple):
    """A value that a script has measured."""

    name: str
    unit: str
    kind: MetricTypes
    labels: Mapping[str, str]
    value: float


Sink = Callable[[Measured], None]
"""Takes a value that a script has measured."""


class ModelMetric:
    """A metric of a script. `sink` gets every value."""

    def __init__(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Optional[List[str]] = None,
        metric_type: MetricTypes = MetricTypes.COUNTER,
        sink: Optional[Sink] = None,
    ) -> None:
        self.metric_name = metric_name
        self.unit = unit
        self.dimension_names = list(dimension_names or ())
        self.metric_type = metric_type
        self._sink = sink

    def add_or_update(self, value: float, dimension_values: Any = (), request_id: str = "") -> None:
        """Add to a counter, or set a gauge. As in the original a value that does not fit is dropped, not raised."""
        values = list(dimension_values or ())
        fits = len(values) == len(self.dimension_names)
        if not fits or (self.metric_type is MetricTypes.COUNTER and value < 0) or self._sink is None:
            return
        labels = {str(name): str(text) for name, text in zip(self.dimension_names, values)}
        self._sink(Measured(self.metric_name, self.unit, self.metric_type, labels, float(value)))

    def update(self, value: float, request_id: str = "", dimensions: Any = ()) -> None:
        """The older form: dimensions, with their values, replace the names."""
        self.dimension_names = [dimension.name for dimension in dimensions or ()]
        self.add_or_update(value, [dimension.value for dimension in dimensions or ()], request_id)


class ModelMetrics:
    """All metrics of a model."""

    def __init__(self, model_name: str, sink: Optional[Sink] = None) -> None:
        self.model_name = model_name
        self.request_ids: Any = None
        self.cache: Dict[MetricTypes, Dict[str, ModelMetric]] = {}
        self.store: List[Any] = []
        self._sink = sink

    def set_request_ids(self, request_ids: Any) -> None:
        self.request_ids = request_ids

    # Metrics by name

    def add_metric_to_cache(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Optional[List[str]] = None,
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> ModelMetric:
        """A new metric. Raises MetricsCacheTypeError."""
        _check(metric_name, str, "`metric_name` must be a str")
        _check(unit, str, "`unit` must be a str")
        _check(metric_type, MetricTypes, "`metric_type` must be a MetricTypes enum")
        if dimension_names:
            _check(dimension_names, list, "`dimension_names` should be a list of dimension name strings")
        metric = ModelMetric(metric_name, unit, dimension_names, metric_type, self._sink)
        self.cache.setdefault(metric_type, {})[metric_name] = metric
        return metric

    def get_metric(self, metric_name: str, metric_type: MetricTypes = MetricTypes.COUNTER) -> ModelMetric:
        """A metric of this name and type. Raises MetricsCacheKeyError."""
        _check(metric_name, str, "`metric_name` must be a str")
        _check(metric_type, MetricTypes, "`metric_type` must be a MetricTypes enum")
        try:
            return self.cache[metric_type][metric_name]
        except KeyError:
            raise MetricsCacheKeyError(
                "Metric of type '%s' and name '%s' doesn't exist" % (metric_type, metric_name)
            ) from None

    # Values

    def add_metric(
        self,
        name: str,
        value: float,
        unit: str = "",
        idx: Optional[int] = None,
        dimensions: Any = None,
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> ModelMetric:
        """A value of a metric of any unit and type."""
        return self._add(name, value, unit, dimensions, metric_type, "Model")

    def add_counter(self, name: str, value: float, idx: Optional[int] = None, dimensions: Any = None) -> ModelMetric:
        return self._add(name, value, "count", dimensions, MetricTypes.COUNTER, "Model")

    def add_time(
        self,
        name: str,
        value: float,
        idx: Optional[int] = None,
        unit: str = "ms",
        dimensions: Any = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> ModelMetric:
        """Raises MetricsCacheValueError for another unit than `ms` and `s`."""
        if unit not in TIME_UNITS:
            raise MetricsCacheValueError("the unit for a timed metric should be one of ['ms', 's']")
        return self._add(name, value, unit, dimensions, metric_type, "Model")

    def add_size(
        self,
        name: str,
        value: float,
        idx: Optional[int] = None,
        unit: str = "MB",
        dimensions: Any = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> ModelMetric:
        """Raises ValueError for a unit that is no size."""
        if unit not in SIZE_UNITS:
            raise ValueError("The unit for size based metric is one of ['MB','kB', 'GB', 'B']")
        return self._add(name, value, unit, dimensions, metric_type, "Model")

    def add_percent(
        self,
        name: str,
        value: float,
        idx: Optional[int] = None,
        dimensions: Any = None,
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> ModelMetric:
        """A value of a metric in percent."""
        return self._add(name, value, "percent", dimensions, metric_type, "Model")

    def add_error(self, name: str, value: float, dimensions: Any = None) -> ModelMetric:
        return self._add(name, value, "", dimensions, MetricTypes.COUNTER, "Error")

    def _add(
        self, name: str, value: float, unit: str, dimensions: Any, metric_type: MetricTypes, level: str
    ) -> ModelMetric:
        """A value with the dimensions that the original adds: the model, and whether it is an error."""
        given = list(dimensions or ())
        names = [dimension.name for dimension in given]
        if level == "Model" and "ModelName" not in names:
            given.append(Dimension("ModelName", self.model_name))
        if "Level" not in names:
            given.append(Dimension("Level", level))
        try:
            metric = self.get_metric(name, metric_type)
        except MetricsCacheKeyError:
            metric = self.add_metric_to_cache(name, unit, [dimension.name for dimension in given], metric_type)
        metric.add_or_update(value, [dimension.value for dimension in given])
        return metric


def _check(value: Any, kind: Any, complaint: str) -> None:
    if not isinstance(value, kind):
        raise MetricsCacheTypeError(complaint)
