"""A model's configuration, its log, and its figures."""

import logging
import os
import sys

from triton_python_backend_utils._errors import TritonModelException


class ModelConfig:
    """What `auto_complete_config` completes."""

    def __init__(self, config):
        self._config = config

    def as_dict(self):
        return self._config

    def add_input(self, properties):
        self._add("input", properties, ("name", "data_type", "dims", "optional", "reshape", "allow_ragged_batch"))

    def add_output(self, properties):
        self._add("output", properties, ("name", "data_type", "dims"))

    def _add(self, kind, properties, allowed):
        for name in properties:
            if name not in allowed:
                raise ValueError("%s: '%s' is no property of it" % (kind, name))
        for name in ("name", "data_type", "dims"):
            if name not in properties:
                raise ValueError("%s: the property '%s' is missing" % (kind, name))
        others = self._config.setdefault(kind, [])
        for other in others:
            if other["name"] == properties["name"]:
                other.update({name: value for name, value in properties.items() if not other.get(name)})
                return
        others.append(dict(properties))

    def set_max_batch_size(self, size):
        if self._config.get("max_batch_size", 0) > size:
            raise ValueError("max_batch_size is %d already" % self._config["max_batch_size"])
        self._config["max_batch_size"] = size

    def set_dynamic_batching(self):
        self._config.setdefault("dynamic_batching", {})

    def set_model_transaction_policy(self, policy):
        for name in policy:
            if name != "decoupled":
                raise ValueError("'%s' is no transaction policy" % name)
        self._config["model_transaction_policy"] = dict(policy)


class Logger:
    """Writes to the server's log."""

    ERROR, WARNING, INFO, VERBOSE = "error", "warning", "info", "debug"
    LogLevel = type("LogLevel", (), {"ERROR": ERROR, "WARNING": WARNING, "INFO": INFO, "VERBOSE": VERBOSE})

    @staticmethod
    def log(message, level="info"):
        if level != "debug" or logging.getLogger().isEnabledFor(logging.DEBUG):
            print("%s%s" % ("" if level == "info" else level + ": ", message), flush=True)

    @classmethod
    def log_info(cls, message):
        cls.log(message)

    @classmethod
    def log_warn(cls, message):
        cls.log(message, cls.WARNING)

    @classmethod
    def log_error(cls, message):
        cls.log(message, cls.ERROR)

    @classmethod
    def log_verbose(cls, message):
        cls.log(message, cls.VERBOSE)


class MetricFamily:
    """Figures of one name. `/metrics` shows them: the sum over all workers, and of a gauge the value set last."""

    COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
    reporter = None
    """What tells the server of a change; the dialect sets it before the model is loaded."""

    def __init__(self, name="", description="", kind=COUNTER):
        if not name or kind not in (self.COUNTER, self.GAUGE, self.HISTOGRAM):
            raise TritonModelException("MetricFamily needs a name, and a kind: COUNTER, GAUGE or HISTOGRAM")
        self.name, self.description, self.kind = name, description, kind

    def Metric(self, labels=None, buckets=None):  # noqa: N802
        if (buckets is not None) != (self.kind == self.HISTOGRAM):
            raise TritonModelException("buckets are needed for histograms, and for nothing else")
        return Metric(self, dict(labels or {}), list(buckets or ()))


class Metric:
    """One figure: a name with its labels."""

    def __init__(self, family, labels, buckets):
        self._family, self._labels, self._buckets = family, labels, buckets
        self._value = 0.0
        self._tell("add", 0.0)

    def _tell(self, change, value):
        family = self._family
        if family.reporter is not None:
            labels = {str(name): str(text) for name, text in self._labels.items()}
            about = {"family": str(family.name), "help": str(family.description), "kind": family.kind}
            family.reporter({**about, "labels": labels, "buckets": self._buckets, "change": change, "value": value})

    def increment(self, by):
        if self._family.kind == MetricFamily.HISTOGRAM or (by < 0 and self._family.kind == MetricFamily.COUNTER):
            raise TritonModelException("a counter grows, a gauge may shrink, and a histogram takes observe()")
        self._value += by
        self._tell("add", float(by))

    def set(self, value):
        if self._family.kind != MetricFamily.GAUGE:
            raise TritonModelException("only a gauge can be set")
        self._value = value
        self._tell("set", float(value))

    def observe(self, value):
        if self._family.kind != MetricFamily.HISTOGRAM:
            raise TritonModelException("only a histogram takes observe()")
        self._tell("observe", float(value))

    def value(self):
        """What this worker has made of it."""
        if self._family.kind == MetricFamily.HISTOGRAM:
            raise TritonModelException("a histogram has no single value")
        return self._value


def get_input_config_by_name(model_config, name):
    return next((tensor for tensor in model_config.get("input", ()) if tensor["name"] == name), None)


def get_output_config_by_name(model_config, name):
    return next((tensor for tensor in model_config.get("output", ()) if tensor["name"] == name), None)


def using_decoupled_model_transaction_policy(model_config):
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def get_model_dir():
    """The folder of the model's version."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))
