"""The state that all connections of one listener share."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from typing import Any, Protocol

from panglot.engine.call import CallProgress
from panglot.jobs.interface import Jobs
from panglot.metrics.counters import Metrics
from panglot.settings import Settings
from panglot.web.access.origins import Origins
from panglot.web.access.sessions import Sessions
from panglot.web.access.tokens import Access
from panglot.web.limits.quota import Quota
from panglot.web.limits.spool import Spool
from panglot.web.models import Model, ModelAdministration, Models, Repository
from panglot.web.pages.assets import Assets
from panglot.web.pages.live import Live
from panglot.web.paths import Paths
from panglot.web.reported import ReportedProgress

ASGI = Callable[[Any, Any, Any], Awaitable[None]]
RECENT = 50


Recent = tuple[float, bytes, str, int, int, int, tuple[int, int, int, int, int], str]
"""A request just answered, for the page: when, id, route, status, total and queue microseconds, stage times, model."""


class OtherFronts(Protocol):
    """The other fronts of a server that has several."""

    async def metrics(self, own: str, listener: int, model: str) -> str:
        """The counters of all fronts together, given this front's, for all models or the one of this name."""

    async def status(self, own: Mapping[str, Any], listener: int, is_tick: bool, model: str) -> dict[str, Any]:
        """The figures of all fronts for the status page, given those of this front: all, or what has changed.

        `model` is the name of the model that they are about; empty: all.
        """

    async def request(self, request_id: str, listener: int) -> dict[str, Any] | None:
        """One of the recent requests of another front; None where none of them had it."""

    async def said(
        self, own: Mapping[str, Any], request_id: str, began: float, ended: float, listener: int
    ) -> dict[str, Any]:
        """The log lines of a request and its error, of all fronts together, given those of this front."""

    async def counts(self, model: Model) -> list[dict[str, Any]]:
        """What each other front has counted of a model, for its statistics."""

    async def progress(self, request_id: str, listener: int) -> CallProgress | None:
        """How far a request of another front is, where its script has said so."""


class Front:
    """What the connections of one listener know: the models, the server's settings, and what they count and share.

    `metrics` holds what belongs to no model; where there is only one model, it is that model's.
    """

    def __init__(self, models: Models, settings: Settings, metrics: Metrics, access: Access, quota: Quota) -> None:
        self.models = models
        self.settings = settings
        self.metrics = metrics
        self.access = access
        self.quota = quota
        self.paths = Paths(models, bool(settings.cors_origin))
        # Before the app's watcher, which fills in `paths.pages`: watchers are called in the order of their coming.
        models.watch(self._map)
        self.app: ASGI | None = None
        self.assets = Assets()
        self.sessions = Sessions(access.token, access.keys, access.session_secret)
        self.public: frozenset[bytes] = frozenset()
        self.repository: Repository | None = None
        """What loads and unloads models, where that is allowed; set by the code that makes the front."""
        self.administration: Callable[[str], ModelAdministration] | None = None
        """By dialect: what its routes may do with its models; set by the code that makes the front."""
        self.jobs: Jobs | None = None
        """The jobs of the server; set by the code that makes the front."""
        self.reload: Callable[[str], None] = self._reload_models
        """Loads the script of the model of a name again, or with "" all; with several fronts, in all of them."""
        self.progress = ReportedProgress()
        self.others: OtherFronts | None = None
        """The other fronts of this server, where there are some."""
        self.others_ready: Callable[[], bool] = lambda: True
        """Whether they have loaded their models."""
        self.listener = 0
        """Which of the server's addresses this is, in the order in which they were taken."""
        self.spool = Spool(settings.spool_bytes, quota)
        self.draining = False
        self.began = time.monotonic()
        self.recent: deque[Recent] = deque(maxlen=RECENT)
        self.date = b""
        self.beginnings: dict[tuple[int, bytes], bytes] = {}
        """The first lines of answers by status and head, made once. See `http1.heads.answer_head`."""
        self.origins = Origins(settings.cors_origin)
        self.observers: list[Callable[..., None]] = []
        """Called for every answered exchange with the exchange, status, stage times and total microseconds."""
        self.recorded: Callable[[Any], Any] | None = None
        """Makes the callbacks of a connection whose traffic is recorded; set by the code that makes the front."""
        self._prefix = os.urandom(4).hex().encode()
        self._count = itertools.count(1)
        self.live = Live(self)
        self.tick()

    def tick(self) -> None:
        """Renew the date line; called about once a second."""
        self.date = b"date: " + formatdate(time.time(), usegmt=True).encode() + b"\r\n"

    def new_request_id(self) -> bytes:
        return b"%s-%x" % (self._prefix, next(self._count))

    def _map(self) -> None:
        self.paths = Paths(self.models, bool(self.settings.cors_origin))

    def _reload_models(self, name: str) -> None:
        for model in self.models:
            if name in ("", model.name):
                model.engine.reload()

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        about = "bytes of request bodies, and of answers that clients are slow to read"
        own: list[tuple[str, str, dict[str, str], float]] = [
            ("panglot_request_memory_bytes", about, {}, self.quota.used)
        ]
        return own if self.jobs is None else own + self.jobs.gauges()

    def is_public(self, path: bytes) -> bool:
        """Whether any client may request this path: it is answered even when connections run out."""
        return path in self.public
