"""The headers by which a request becomes a job, and the faults of requests that cannot become one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import NamedTuple

from panglot.engine.call import Fault
from panglot.jobs import job as jobs
from panglot.jobs.job import DEFAULT_EVENTS, EVENTS, JobTrouble, Webhook
from panglot.settings import Settings
from panglot.web.contract import RouteRefused
from panglot.web.job_contract import JobOptions

LONGEST_WAIT = 60.0
"""The most seconds of a client's `Prefer: wait=N`. A platform whose contract has another limit says so itself."""
LONGEST_KEY = 255
WAIT = re.compile(r"wait=([0-9]{1,6})")
TRACE_PARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
TRACE_STATE = re.compile("[!-~][ -~]{0,511}")
GONE = Fault(410, "job_removed", "the job was removed")
STATUSES = {jobs.FULL: 429, jobs.DISK: 507, jobs.UNAVAILABLE: 503, jobs.KEY_REUSED: 422, jobs.DAMAGED: 500}
NO_WEBHOOKS = Fault(400, "no_webhooks", "this server calls nobody back; see --webhook-allow")


class Preference(NamedTuple):
    """The header Prefer, as far as it concerns jobs."""

    respond_async: bool = False
    wait: float | None = None


NO_PREFERENCE = Preference()


def preference(value: bytes) -> Preference:
    """Read the header Prefer (RFC 7240). Unknown words are ignored."""
    if not value:
        return NO_PREFERENCE
    words = [word.strip().lower() for word in value.decode("latin-1").split(",")]
    waits = [match for word in words if (match := WAIT.fullmatch(word.replace(" ", "")))]
    return Preference("respond-async" in words, float(waits[0][1]) if waits else None)


def fault(trouble: JobTrouble) -> Fault:
    """The answer for a command that was not done."""
    status = STATUSES.get(trouble.code, 429)
    retry = trouble.retry_after or {429: 1, 507: 10, 503: 10}.get(status, 0)
    return Fault(status, trouble.code, str(trouble), retry)


def completed(
    options: JobOptions, headers: Mapping[str, str], preference: Preference, settings: Settings
) -> JobOptions:
    """The options of the dialect. The request's headers fill in what it leaves open. Raises RouteRefused."""
    changes: dict[str, object] = {}
    if options.wait is None:
        changes["wait"] = min(preference.wait or 0.0, LONGEST_WAIT)
    if options.key is None and "idempotency-key" in headers:
        changes["key"] = _key(headers["idempotency-key"])
    webhook = options.webhook
    if webhook is None and "job-webhook" in headers:
        webhook = _webhook(headers["job-webhook"])
        changes["webhook"] = webhook
    if webhook is not None and options.is_job:
        check_webhook(webhook, settings)
        changes["webhook"] = webhook._replace(trace=_trace(headers))
    return dataclasses.replace(options, **changes)  # type: ignore[arg-type]


def _trace(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers by which a receiver continues the trace of a request; none where they are not valid."""
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not TRACE_PARENT.fullmatch(parent):
        return ()
    return (("traceparent", parent), *((("tracestate", state),) if TRACE_STATE.fullmatch(state) else ()))


def _key(given: str) -> str:
    key = given.strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key or len(key) > LONGEST_KEY:
        message = f"an Idempotency-Key has 1 to {LONGEST_KEY} characters"
        raise RouteRefused(Fault(400, "bad_key", message))
    return key


def _webhook(given: str) -> Webhook:
    """Read `https://example.com/hook; events="completed failed"`. Raises RouteRefused."""
    url, _, parameters = given.partition(";")
    events: tuple[str, ...] = DEFAULT_EVENTS
    name, _, value = parameters.strip().partition("=")
    if name:
        events = tuple(value.strip().strip('"').replace(",", " ").split())
        if name.strip() != "events" or not events or set(events) - set(EVENTS):
            message = f'Job-Webhook is URL; events="..." with some of {", ".join(EVENTS)}'
            raise RouteRefused(Fault(400, "bad_webhook", message))
    return Webhook(url.strip(), events)


def check_webhook(webhook: Webhook, settings: Settings) -> None:
    """Refuse an address that the server may not call. Raises RouteRefused."""
    from panglot.jobs.webhooks.sending import refusal

    if not settings.webhook_allow:
        raise RouteRefused(NO_WEBHOOKS)
    reason = refusal(webhook.url, settings.webhook_allow)
    if reason:
        raise RouteRefused(Fault(400, "bad_webhook", reason))
