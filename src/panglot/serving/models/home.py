"""Whether all workers of a model belong to the first front, and its settings if they are on other machines."""

from __future__ import annotations

import dataclasses

from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract


def needs_one_front(package: Package, settings: Settings, contract: Contract) -> bool:
    """Whether all workers of a model must belong to the first front of a server."""
    return bool(
        # A cluster has one driver.
        settings.ray
        # Memory that outlives a worker is a file of the front that started it.
        or package.retained_bytes
        # One front has to know which worker has a key.
        or package.sticks_by
        # A call that a worker refuses goes to another worker of the same front.
        or package.tries_elsewhere
        # The links end with the front that made them, so the workers that use them must end with it too.
        or (settings.link_paths and package.fixed_paths)
        # A task beside the server looks at the workers of one front.
        or contract.runs_with_server
    )


def on_nodes(settings: Settings) -> Settings:
    """The settings of a model with workers on other machines: no memory can be shared with these."""
    return dataclasses.replace(settings, share_from=0, handoff_slot=0)
