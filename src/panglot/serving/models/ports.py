"""The further ports of a server, and the models that each of them serves by a contract of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from panglot.serving.models import host as model_host
from panglot.web.contract import Contract, Listener
from panglot.web.models import Model, Models, only


def distinct(contracts: Iterable[Contract]) -> list[Listener]:
    """The ports of these contracts, in the order in which they are taken. A port that models share is there once."""
    chosen: dict[tuple[int, int], Listener] = {}
    for listener in (listener for contract in contracts for listener in contract.listeners):
        # Two packages may want one port that they do not share: taking it for the second one raises StartError.
        chosen.setdefault((listener.port, 0 if listener.shared else 1 + len(chosen)), listener)
    return list(chosen.values())


def purpose(listener: Listener, dialect: str) -> str:
    """The purpose of a port, for the log."""
    routes = listener.contract.routes
    return routes[0].target if routes and routes[0].target else f"{dialect}'s own"


class FurtherPort:
    """One further port. `models` follows those of the server where several models share the port."""

    def __init__(self, listener: Listener, served: Models, token: bool) -> None:
        self.listener = listener
        self._served = served
        self._token = token
        holders = list(self._holders())
        default = served.default_name
        if not any(model.name == default for model, _ in holders):
            default = holders[0][0].name
        model, own = next((model, own) for model, own in holders if listener.shared or own is listener)
        if listener.shared:
            self.models = Models(default=default)
            self._follow()
            served.watch(self._follow)
        else:
            self.models = only(model_host.at_listener(model, own, token))

    def _holders(self) -> Iterator[tuple[Model, Listener]]:
        """The models that declare this port, each with its declaration."""
        for model in self._served:
            for listener in model.contract.listeners:
                if listener.port == self.listener.port and (listener.shared or listener is self.listener):
                    yield model, listener

    def _follow(self) -> None:
        """Serve the models of the server that declare this port now, and no others."""
        holders = {(model.name, model.version): (model, listener) for model, listener in self._holders()}
        for model in list(self.models):
            holder = holders.get((model.name, model.version))
            # A version that was loaded again has the same name, and another engine.
            if holder is None or holder[0].engine is not model.engine:
                self.models.remove(model)
        for (name, version), (model, listener) in holders.items():
            if self.models.get(name, version) is None:
                self.models.add(model_host.at_listener(model, listener, self._token))
