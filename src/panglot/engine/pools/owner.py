"""What the pools of a pipeline expect of the engine they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from panglot.engine.call import Call
from panglot.engine.pools.poison import Poison
from panglot.errors import LoadError

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool


class PoolOwner(Protocol):
    """The engine, as its pools know it."""

    poison: Poison
    """Which requests have killed workers, in any pool."""

    def new_id(self) -> int:
        """A number that no item has had before."""

    def workers_wanted(self) -> int:
        """How many workers all pools together are to have, at most."""

    def pool_ready(self, pool: Pool, ready: dict[str, Any]) -> None:
        """A worker of a pool is ready; `ready` is what it said."""

    def load_failed(self, error: LoadError) -> None:
        """A script did not load, and there was none before it to go on with."""

    def finished(self, call: Call) -> None:
        """A call has its answer and leaves the engine."""

    def trouble(self, request_id: str, message: str, traceback: str, worker: int | None = None) -> None:
        """Note a script's failure in the log and for the page."""

    def remember(self, message: str, more: str) -> None:
        """Keep a line, and what belongs to it, for the page."""

    def divide(self, pools: list[dict[str, Any]]) -> bool:
        """Make the pipeline that the script asks for; False when it is too late for that."""

    def found_poison(self, call: Call) -> None:
        """Refuse calls like this one from now on."""
