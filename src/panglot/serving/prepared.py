"""A server before it serves: its plan, its ports, its rules of access. It has no thread and no loop yet."""

from __future__ import annotations

import dataclasses
import logging
import ssl
from typing import NamedTuple

from panglot import dialects
from panglot.engine.ray import needs
from panglot.errors import LoadError
from panglot.jobs.webhooks.sending import SIGN, UNSIGNED
from panglot.machine import devices
from panglot.serving.forgetting import forget_tokens
from panglot.serving.models import host as model_host
from panglot.serving.models.ports import distinct, purpose
from panglot.serving.planning import ServingPlan, sleep_warnings
from panglot.web import listeners
from panglot.web.access import tokens as access
from panglot.web.listeners import Sockets
from panglot.web.listening.tls import tls_context

log = logging.getLogger("panglot")


class Prepared(NamedTuple):
    """Everything that is known and taken before the first script is loaded. Several fronts inherit it by the fork."""

    plan: ServingPlan
    rules: access.Access
    sockets: Sockets
    purposes: list[str]
    """Of the further ports of HTTP, for the log."""
    tls: ssl.SSLContext | None


def prepare(plan: ServingPlan) -> Prepared:
    """Check a plan, take its ports and install what its packages require. Raises StartError."""
    settings = plan.settings
    for model in plan.models:
        if model.settings.ray:
            needs.check(model.package, model.settings)
    _tell_problems(plan)
    contracts = [dialects.contract(model.package, model.settings) for model in plan.models]
    rules = access.establish(settings, administrable=any(contract.admin for contract in contracts))
    # After `establish` has read the tokens, and before workers and installers start: they inherit the environment.
    forget_tokens()
    tls = tls_context(settings)
    # Before the installation below, which takes minutes: a port that is taken must be an error at once.
    further = distinct(contracts)
    sockets = listeners.bind_all(further, settings)
    dialect_of = {id(port): model.package.dialect for model, its in zip(plan.models, contracts, strict=True)
                  for port in its.listeners}  # fmt: skip
    purposes = [purpose(port, dialect_of[id(port)]) for port in further]
    if rules.is_closed and tls is None and not access.is_loopback(settings.host):
        log.warning("the token travels over plain HTTP: use --tls-cert and --tls-key, or a proxy that speaks TLS")
    if settings.webhook_allow and not rules.webhook_keys:
        log.warning("%s (fix: %s)", UNSIGNED, SIGN)
    plan = dataclasses.replace(plan, models=tuple(model_host.installed(model) for model in plan.models))
    return Prepared(plan, rules, sockets, purposes, tls)


def _tell_problems(plan: ServingPlan) -> None:
    for model in plan.models:
        for problem in model.package.problems:
            log.warning("%s", problem, extra={"package": model.name})
        no_device = devices.lacking(model.settings.device, devices.count())
        if no_device:
            log.warning("%s", no_device, extra={"package": model.name})
        for warning in sleep_warnings(model.package, model.settings):
            log.warning("%s", warning, extra={"package": model.name})
    for warning in plan.warnings:
        log.warning("%s", warning, extra={"package": plan.models[0].name} if plan.planner is None else None)
    for name, error in plan.failed.items():
        stack = error.traceback.rstrip() if isinstance(error, LoadError) else ""
        log.error("%s is not served: %s", name, error.sentence(), extra={"package": name, "traceback": stack})
