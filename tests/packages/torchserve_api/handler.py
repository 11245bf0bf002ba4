"""Uses all that a context has, and says what it found."""

import os

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class ApiHandler:
    def initialize(self, context):
        self.manifest = context.manifest
        self.at_load = [context.request_ids, context.request_processor, os.getcwd() == self.folder(context)]

    @staticmethod
    def folder(context):
        return os.path.realpath(context.system_properties["model_dir"])

    def handle(self, data, context):
        act = (data[0].get("body") or {}).get("act", "") if isinstance(data[0].get("body"), dict) else ""
        return [getattr(self, act or "nothing")(index, context) for index in range(len(data))]

    def nothing(self, index, context):
        return "nothing"

    def ids(self, index, context):
        kinds = [
            type(context.request_ids).__name__,
            list(context.request_ids),
            type(context.request_processor).__name__,
        ]
        return [kinds, context.get_request_id(index) == context.request_ids[index], context.get_request_id(7)]

    def properties(self, index, context):
        properties = {key: value for key, value in context.system_properties.items() if key != "model_dir"}
        return [properties, context.model_name, context.model_yaml_config, self.at_load, sorted(self.manifest["model"])]

    def headers(self, index, context):
        processor = context.request_processor[index]
        kind = context.get_request_header(index, "Content-Type")
        same = [processor.get_request_property("Content-Type"), processor._request_header["Content-Type"]]
        return [kind, same, context.get_request_header(index, "X-None"), context.get_sequence_id(index)]

    def sequences(self, index, context):
        keys = context.header_key_sequence_id, context.header_key_sequence_start, context.header_key_sequence_end
        return [list(keys), context.stopping_criteria is None, context.cl_socket is not None]

    def answers(self, index, context):
        context.set_response_content_type(index, "text/x-one")
        context.set_response_header(index, "x-two", "2")
        context.set_response_status(201, "Made", index)
        set_before = [dict(context.get_response_headers(index)), list(context.get_response_status(index))]
        context.set_all_response_status(202, "All")
        return [set_before, list(context.get_response_status(index))]

    def processor(self, index, context):
        processor = context.request_processor[index]
        processor.report_status(203, "Own")
        processor.add_response_property("x-three", "3")
        return [processor.get_response_status_code(), processor.get_response_headers()["x-three"]]

    def variables(self, index, context):
        names = ("TS_DECODE_INPUT_REQUEST", "LOCAL_RANK", "WORLD_SIZE", "RANK")
        return {name: os.environ.get(name) for name in names}

    def metrics(self, index, context):
        metrics = context.metrics
        metrics.add_counter("Rows", 3)
        metrics.add_time("Waited", 7, unit="ms")
        metrics.add_size("Read", 5, unit="kB")
        metrics.add_percent("Full", 40)
        metrics.add_error("Wrong", 1)
        metrics.add_metric("Any", 2, "count", dimensions=[Dimension("Kind", "cat")])
        cached = metrics.add_metric_to_cache("Cached", "count", ["Kind"], MetricTypes.COUNTER)
        cached.add_or_update(4, ["dog"])
        same = metrics.get_metric("Cached", MetricTypes.COUNTER) is cached
        try:
            metrics.get_metric("Unknown", MetricTypes.GAUGE)
        except KeyError as error:
            return [same, type(error).__name__]
