"""A graph instance before it is made: its nodes, and which channels will lead from where to where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, NamedTuple, Optional, Tuple, Union

from panglot_worker.dialects.megflow.graph.channels import Target
from panglot_worker.dialects.megflow.graph.nodes import Placement
from panglot_worker.dialects.megflow.graph.shared import Hub

if TYPE_CHECKING:
    from panglot_worker.dialects.megflow.graph.building import Template


class NodeEnd(NamedTuple):
    """An end of a channel at a port of an ordinary node."""

    placement: Placement
    port: str
    tag: Optional[int]


class HubEnd(NamedTuple):
    """An end of a channel at a port of a shared node, for one of its users."""

    hub: Hub
    user: int
    port: str
    tag: Optional[int]


class TemplateEnd(NamedTuple):
    """An end of a channel at a port of all instances a template will ever have."""

    template: "Template"
    port: str


AnyEnd = Union[NodeEnd, HubEnd, TemplateEnd]


class ChannelPlan:
    """One channel before it is made: its senders and its receivers.

    `outer_targets` join when the graph is wired: the channel outside, for a port of the graph itself.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.senders: List[AnyEnd] = []
        self.receivers: List[AnyEnd] = []
        self.outer_targets: List[Target] = []


class GraphPlan:
    """A graph instance before its channels and threads are made."""

    def __init__(self) -> None:
        self.placements: List[Placement] = []
        self.channels: List[ChannelPlan] = []
        self.inputs: Dict[str, ChannelPlan] = {}
        self.outputs: Dict[str, ChannelPlan] = {}
        self.templates: List[Template] = []
        self.users: List[Tuple[Hub, int]] = []
        """The shared nodes it uses, and the number it has as their user."""
