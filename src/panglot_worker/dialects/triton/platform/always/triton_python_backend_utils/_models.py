"""A model's configuration, its log, and its figures."""

import logging
import os
import sys


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
    """Figures of a model's own. They are stored and not shown: /metrics has the server's figures."""

    COUNTER, GAUGE, HISTOGRAM = range(3)

    def __init__(self, name="", description="", kind=COUNTER):
        self.name, self.description, self.kind = name, description, kind

    def Metric(self, labels=None, buckets=None):  # noqa: N802
        return Metric()


class Metric:
    """One figure."""

    def __init__(self):
        self._value = 0.0

    def increment(self, by):
        self._value += by

    def set(self, value):
        self._value = value

    def observe(self, value):
        self._value = value

    def value(self):
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
