"""`megflow.Graph`: a graph inside a program of one's own."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Dict, List, Optional

from panglot_worker.dialects.megflow import plugins
from panglot_worker.dialects.megflow.channels import Channel
from panglot_worker.dialects.megflow.handles import Receiver, Sender
from panglot_worker.dialects.megflow.runtime import Runtime
from panglot_worker.graphs import picture, reading
from panglot_worker.graphs.configuration import Config
from panglot_worker.graphs.errors import GraphError
from panglot_worker.graphs.ports import SERVERS


class Graph:
    """Built and started by its construction. Raises GraphError, and whatever plugins raise while they load."""

    def __init__(
        self,
        config_path: Optional[str] = None,
        config_str: Optional[str] = None,
        dynamic_path: Optional[str] = None,
        dynamic_str: Optional[str] = None,
        plugin_path: Optional[str] = None,
        module_path: Optional[str] = None,
        dump: bool = False,
    ) -> None:
        config = _config(config_path, config_str, dynamic_path, dynamic_str, plugin_path)
        served = [node for graph in config.graphs.values() for node in graph.nodes if node.ty in SERVERS]
        if served:
            raise GraphError("%s listens on a port, which needs a server" % served[0].ty, *served[0].place,
                             "run the graph with panglot serve, or give it inputs and outputs of its own")  # fmt: skip
        if plugin_path:
            plugins.load(plugin_path, module_path or os.getcwd(), lambda _: None)
        if dump:
            picture.write(config, config.file or "graph.toml")
        self._runtime = Runtime(config, plugins.kinds(), _print, _skip)
        main = self._runtime.main
        self._outputs: Dict[str, Receiver] = {}
        for name, net in main.plan.outputs.items():
            channel = Channel(net.cap)
            net.outer_targets.append(channel)
            self._outputs[name] = Receiver(channel, name)
        self._runtime.start(open_inputs=True)
        self._inputs: Dict[str, Sender] = main.inputs

    def inputs(self) -> List[str]:
        return list(self._inputs)

    def outputs(self) -> List[str]:
        return list(self._outputs)

    def input(self, name: str) -> Optional[Sender]:
        return self._inputs.get(name)

    def output(self, name: str) -> Optional[Receiver]:
        return self._outputs.get(name)

    def close(self) -> None:
        """No more input: the graph finishes what it has and ends."""
        self._runtime.close()

    def wait(self) -> None:
        """Close, drop what comes out, and wait for the end. Raises RuntimeError when a node failed."""
        self.close()
        for receiver in self._outputs.values():
            receiver.channel.close()
        self._runtime.wait()
        if self._runtime.failures:
            raise RuntimeError("%d call(s) of nodes failed; their tracebacks are above" % self._runtime.failures)


def _config(
    path: Optional[str], text: Optional[str], dynamic: Optional[str], dynamic_text: Optional[str], plugin: Optional[str]
) -> Config:
    if text is None and path is None:
        if plugin is None:
            raise GraphError("a graph needs config_path, config_str or plugin_path")
        path = default_config(plugin)
    if path is not None:
        return reading.read(path, dynamic or "")
    if dynamic and not dynamic_text:
        with open(dynamic, encoding="utf-8") as source:
            dynamic_text = source.read()
    return reading.read_text(text or "", dynamic_text or "")


def default_config(plugin: str) -> str:
    """`DIR/DIR.toml`."""
    return os.path.join(plugin, os.path.basename(os.path.abspath(plugin)) + ".toml")


def _print(node: str, error: BaseException) -> None:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    sys.stderr.write("node '%s' failed:\n%s" % (node, text))


def _skip(node: str, what: str) -> None:
    print("node '%s' left out %s" % (node, what), file=sys.stderr)
