"""A front whose engine stands still: what the documents and the page say, without a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot import dialects
from panglot.engine.call import Call, Fault
from panglot.engine.interface import READY, Trouble
from panglot.inputs.base import About
from panglot.inputs.curl_line import curl_line
from panglot.metrics.counters import Metrics
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.access.tokens import Access
from panglot.web.front import Front
from panglot.web.limits.quota import Quota
from panglot.web.models import Model, only


@dataclass
class StillEngine:
    """Says what it was told to say and takes no calls."""

    description: dict[str, Any] = field(default_factory=dict)
    state: str = READY
    troubles: list[Trouble] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def submit(self, call: Call) -> Fault | None:
        return Fault(503, "still", "this engine takes no calls")

    def cancel(self, call: Call) -> None:
        pass

    def pause_stream(self, call: Call, paused: bool) -> bool:
        return False

    def trouble(self, request_id: str, message: str, traceback: str, worker: int | None = None) -> None:
        self.troubles.append(Trouble(0.0, request_id, message, traceback))

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        return []

    def sizes(self) -> list[dict[str, Any]]:
        return []

    def workers(self) -> list[dict[str, Any]]:
        return self.rows


def still_front(
    api: dict[str, Any] | None = None,
    *,
    name: str = "still",
    state: str = READY,
    token: bytes = b"",
    hosts: frozenset[bytes] = frozenset(),
    **settings: Any,
) -> Front:
    folder = Path(__file__).parent
    package = Package(name=name, folder=folder, script=folder / "model.py", dialect="plain", entry="predict")
    engine = StillEngine({"api": api} if api is not None else {}, state)
    chosen = Settings(**settings)
    contract = dialects.contract(package, chosen)
    about = About("plain", contract.routes[0].path, {}, api or {})
    metrics, quota = Metrics(), Quota(chosen)
    model = Model(name, "1", package, chosen, engine, metrics, contract, quota)
    model.curl_line = lambda base: curl_line(base, about, folder, bool(token))
    return Front(only(model), chosen, metrics, Access(token, hosts), quota)


def still_model(front: Front) -> Model:
    """The only model of a front."""
    model = front.models.default
    assert model is not None
    return model
