"""`megflow.Graph`: a graph that runs inside a user's own program."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Dict, Iterator, List, Optional

from panglot_worker.dialects.megflow.graph import plugins
from panglot_worker.dialects.megflow.graph.channels import Channel
from panglot_worker.dialects.megflow.graph.handles import Receiver, Sender
from panglot_worker.dialects.megflow.graph.runtime import Runtime, failed_calls
from panglot_worker.dialects.megflow.servers.small_front import ListeningNode, SmallFront
from panglot_worker.dialects.megflow.video import images
from panglot_worker.graphs import picture, reading
from panglot_worker.graphs.configuration import Config
from panglot_worker.graphs.errors import GraphError
from panglot_worker.graphs.ports import SERVERS
from panglot_worker.video import interpreter
from panglot_worker.video.limits import limits_of


class Graph:
    """A graph, built and started by its construction.

    Raises GraphError, and whatever plugins raise while they load.
    """

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
        if plugin_path:
            plugins.load(plugin_path, module_path or os.getcwd(), lambda _: None)
        if dump:
            picture.write(config, config.file or "graph.toml")
        served = list(_servers(config, config.main, ""))
        self._runtime = Runtime(config, plugins.known_classes(), _print, _skip)
        self._runtime.settings = _settings()
        _check_libraries(served, self._runtime.settings)
        # Before any node is constructed: a port that is taken fails the graph before its models load.
        self._front = SmallFront(served) if served else None
        try:
            self._begin()
        except BaseException:
            if self._front is not None:
                self._front.close_listeners()
            raise

    def _begin(self) -> None:
        """Connect the graph's own ports and let it run. Raises what the construction of nodes raises."""
        if self._front is not None:
            self._runtime.gateway = self._front.gateway
        main = self._runtime.main
        self._closed = False
        self._outputs: Dict[str, Receiver] = {}
        for name, planned in main.plan.outputs.items():
            channel = Channel(planned.cap)
            planned.outer_targets.append(channel)
            self._outputs[name] = Receiver(channel, name)
        self._runtime.start(open_inputs=True)
        self._inputs: Dict[str, Sender] = main.inputs
        if self._front is not None:
            self._front.start(self._runtime)

    def ports(self) -> Dict[str, int]:
        """The port of each server node, by its name. MegFlow does not have this; it is for graphs with port = 0."""
        return self._front.ports() if self._front is not None else {}

    def inputs(self) -> List[str]:
        return list(self._inputs)

    def outputs(self) -> List[str]:
        return list(self._outputs)

    def input(self, name: str) -> Optional[Sender]:
        return self._inputs.get(name)

    def output(self, name: str) -> Optional[Receiver]:
        return self._outputs.get(name)

    def close(self) -> None:
        """No more input, neither from the program nor from clients: the graph finishes what it has and ends."""
        if self._front is not None and not self._closed:
            self._closed = True
            # Before the runtime: requests that were taken still pass through the graph.
            self._front.close()
            self._front.wait()
        self._runtime.close()

    def wait(self) -> None:
        """Drop what comes out, and wait for the end. Raises RuntimeError when a node failed.

        A graph with server nodes serves meanwhile, until `close` is called or the program is interrupted. Any other
        is closed by this.
        """
        for receiver in self._outputs.values():
            # Nobody reads the outputs any more: full channels would stop the graph.
            receiver.channel.close()
        if self._front is None:
            self.close()
        else:
            self._runtime.main.close()
        try:
            self._runtime.wait()
        except KeyboardInterrupt:
            self.close()
            raise
        if self._runtime.failures:
            raise RuntimeError(failed_calls(self._runtime.failures))


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
        dynamic_text = reading.text_of(dynamic)
    return reading.read_text(text or "", dynamic_text or "")


def _servers(config: Config, graph: str, path: str) -> Iterator[ListeningNode]:
    """The nodes that listen, in static subgraphs too."""
    for node in config.graphs[graph].nodes:
        inner = "%s/%s" % (path, node.name) if path else node.name
        if node.ty in SERVERS:
            yield ListeningNode(inner, node)
        elif node.ty in config.graphs:
            yield from _servers(config, node.ty, inner)


def _settings() -> Dict[str, Any]:
    """The settings that a server would get by flags, from the same variables."""
    named = os.environ.get("PANGLOT_URL_ALLOW", "").split(",")
    return {
        "uri_root": os.path.abspath(root) if (root := os.environ.get("PANGLOT_URI_ROOT")) else "",
        "url_allow": [name.strip() for name in named if name.strip()],
        "cameras": os.environ.get("PANGLOT_CAMERAS") == "1",
    }


def _check_libraries(served: List[ListeningNode], settings: Dict[str, Any]) -> None:
    """Raises GraphError for a server node without what it needs."""
    for _, node in served:
        if node.ty == "ImageServer" and not images.available():
            raise GraphError("ImageServer needs numpy, and opencv-python or Pillow", *node.position, "install them")
        lack = interpreter.lack(limits_of(settings)) if node.ty == "VideoServer" else None
        if lack is not None:
            raise GraphError("VideoServer needs %s" % lack.what, *node.position, lack.fix)


def default_config(plugin: str) -> str:
    """The graph file of a plugin folder where none is given: `DIR/DIR.toml`."""
    return os.path.join(plugin, os.path.basename(os.path.abspath(plugin)) + ".toml")


def _print(node: str, error: BaseException) -> None:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    sys.stderr.write("node '%s' failed:\n%s" % (node, text))


def _skip(node: str, what: str) -> None:
    print("node '%s' left out %s" % (node, what), file=sys.stderr)
