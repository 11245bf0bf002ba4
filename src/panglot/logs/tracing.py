"""OpenTelemetry spans for requests, their wait and their stages; needs `panglot[otel]`."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

from panglot.errors import StartError
from panglot_worker.line.wire import STAGES

if TYPE_CHECKING:
    from panglot.web.http1.exchange import Exchange

Times = tuple[int, int, int, int, int]


class Tracing:
    """Tells a collector about answered requests. Export happens on a thread of the exporter's own."""

    def __init__(self, endpoint: str, package: str, front: int | None = None) -> None:
        """`front` is the index of this front where the server has several. Raises StartError."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace import SpanKind, set_span_in_context
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise StartError(f"tracing needs {error.name}", fix="pip install 'panglot[otel]'") from None
        # The number of the process tells fronts of one machine apart, also a front and its successor.
        resource = {
            "service.name": f"panglot/{package}",
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
        }
        if front is not None:
            resource["panglot.front"] = str(front)
        self._provider = TracerProvider(resource=Resource.create(resource))
        url = endpoint.rstrip("/")
        exporter = OTLPSpanExporter(url if url.endswith("/v1/traces") else url + "/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self._tracer = self._provider.get_tracer("panglot")
        self._propagator = TraceContextTextMapPropagator()
        self._inside = set_span_in_context
        self._server = SpanKind.SERVER

    def answered(self, exchange: Exchange, status: int, times: Times, total_us: int) -> None:
        """Record one request, from its first byte to its answer."""
        end = time.time_ns()
        begin = end - total_us * 1000
        parent = self._propagator.extract({"traceparent": exchange.trace.decode("latin-1")})
        method = exchange.method.decode()
        span: Any = self._tracer.start_span(
            f"{method} {exchange.route.name}",
            context=parent,
            kind=self._server,
            start_time=begin,
            attributes={
                "http.request.method": method,
                "http.route": exchange.route.name,
                "http.response.status_code": status,
                "panglot.request_id": exchange.request_id.decode("latin-1"),
            },
        )
        inside = self._inside(span)
        moment = begin + int((exchange.arrived - exchange.began) * 1e9)
        for name, duration in (("queue", exchange.queued_us), *zip(STAGES, times, strict=True)):
            child = self._tracer.start_span(name, context=inside, start_time=moment)
            moment += duration * 1000
            child.end(moment)
        span.end(end)

    def close(self) -> None:
        self._provider.shutdown()
