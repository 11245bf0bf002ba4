"""The context that handlers of TorchServe and SageMaker get."""

from __future__ import annotations

import pytest

from panglot_worker.compat.model_context import Context, RequestHeaders, RequestProcessor, header_pairs
from panglot_worker.compat.model_metrics import Dimension, Measured, MetricsCacheKeyError, MetricTypes, ModelMetrics


def test_a_header_is_found_in_any_case() -> None:
    headers = RequestHeaders(header_pairs(b"content-type:application/json\nx-tag: a:b"))
    assert headers == {"Content-Type": "application/json", "X-Tag": "a:b"}
    assert headers["content-type"] == headers.get("CONTENT-TYPE") == "application/json"
    assert "x-tag" in headers
    assert "y" not in headers
    assert headers.get("y", 1) == 1
    with pytest.raises(KeyError):
        headers["y"]


def test_a_context_has_the_requests_of_a_call_and_takes_what_is_said_about_their_answers() -> None:
    context = Context("m", "/m", None, 4, None)
    assert context.system_properties["server_name"] == "MMS"
    assert context.model_yaml_config == {}
    context.set_response_status(400)
    context.begin([("a", RequestProcessor({"k": "v"})), ("b", RequestProcessor({}))])
    assert context.request_ids == {0: "a", 1: "b"}
    assert context.get_request_id(1) == "b"
    assert context.get_request_header(0, "k") == "v"
    assert context.get_all_request_header(1) == {}
    context.set_response_status(299, "Fine", idx=1)
    context.set_response_content_type(0, "text/csv")
    assert context.get_response_status(1) == (299, "Fine")
    assert context.get_response_status(0) == (200, None)
    assert context.get_response_headers(0) == {"content-type": "text/csv"}
    context.set_all_response_status(202)
    assert [processor.get_response_status_code() for processor in context.request_processor or []] == [202, 202]


def test_metrics_of_every_form_are_measured_with_the_dimensions_of_the_original() -> None:
    measured: list[Measured] = []
    metrics = ModelMetrics("m", measured.append)
    metrics.add_counter("Calls", 2)
    metrics.add_time("Took", 3.5, dimensions=[Dimension("Stage", "decode")])
    metrics.add_error("Bad", 1)
    ours = metrics.add_metric_to_cache("Ours", "count", ["A"], MetricTypes.GAUGE)
    ours.add_or_update(7, ["x"])
    ours.add_or_update(7, ["x", "too many"])
    assert metrics.get_metric("Ours", MetricTypes.GAUGE) is ours
    with pytest.raises(MetricsCacheKeyError):
        metrics.get_metric("Ours")
    with pytest.raises(ValueError, match="ms"):
        metrics.add_time("Took", 1, unit="h")
    assert measured == [
        Measured("Calls", "count", MetricTypes.COUNTER, {"ModelName": "m", "Level": "Model"}, 2),
        Measured("Took", "ms", MetricTypes.GAUGE, {"Stage": "decode", "ModelName": "m", "Level": "Model"}, 3.5),
        Measured("Bad", "", MetricTypes.COUNTER, {"Level": "Error"}, 1),
        Measured("Ours", "count", MetricTypes.GAUGE, {"A": "x"}, 7),
    ]
