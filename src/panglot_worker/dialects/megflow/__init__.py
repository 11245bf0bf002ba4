"""MegFlow: a graph of nodes, each a thread of its own, between server nodes that speak HTTP.

The names plugins import are in `platform/always/megflow`; the grammar of graph files is in `panglot_worker.graphs`.
"""

from __future__ import annotations

import os
from typing import Callable, Set, Tuple

from panglot_worker.bodies.magic import OCTETS, media_type
from panglot_worker.dialects.base import Dialect, Package
from panglot_worker.dialects.megflow.graph import plugins
from panglot_worker.dialects.megflow.graph.node_rates import INSTANCE
from panglot_worker.dialects.megflow.graph.runtime import Runtime
from panglot_worker.dialects.megflow.servers.gateway import Gateway
from panglot_worker.dialects.megflow.video import images
from panglot_worker.errors import ScriptError, described
from panglot_worker.graphs import configuration
from panglot_worker.graphs.errors import GraphError
from panglot_worker.line import wire
from panglot_worker.line.description import Description, ExampleRequest
from panglot_worker.line.port import Port
from panglot_worker.scripts.loading import script_traceback
from panglot_worker.video import interpreter
from panglot_worker.video.ledger import Ledger
from panglot_worker.video.limits import limits_of

CLOSE_WITHIN = 1.0
"""Seconds that `close` waits for each thread."""


class Megflow(Dialect):
    """Serves a graph: items go to its server nodes by the gateway, not through stages."""

    server = "panglot_worker.dialects.megflow:serve"

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.slots = int(package.settings.get("slots", 16))
        self.gateway: Gateway
        self.runtime: Runtime

    def load(self, progress: Callable[[str], None]) -> None:
        """Import the plugins, build the graph and construct its nodes. Raises ScriptError."""
        options = self.package.options
        images.limit(int(self.package.settings.get("max_pixels", 40_000_000)))
        os.chdir(options["working"])
        config = configuration.from_json(options["config"])
        self.gateway = Gateway(self.port, Ledger(self.package.retained) if self.package.retained >= 0 else None)
        try:
            plugins.load(options["plugin"], options["module"], progress)
            self._check_libraries(config)
            self.runtime = Runtime(config, plugins.known_classes(), self._failed, self._skipped, self.gateway)
        except GraphError as error:
            raise ScriptError(error.problem, error.file, error.line, error.fix) from None
        self.runtime.settings = self.package.settings
        for sentence in self.runtime.warnings:
            self.warn(sentence)
        self.runtime.start(open_inputs=False, progress=progress)

    def _check_libraries(self, config: configuration.Config) -> None:
        """Refuse to serve pictures without anything to decode them."""
        for entry in self.package.options["servers"]:
            need = "numpy" if entry["type"] == "BytesServer" else "numpy, and opencv-python or Pillow"
            if entry["type"] == "ImageServer" and not images.available():
                raise ScriptError("ImageServer needs %s" % need, config.file, entry["line"],
                                  "install them for the interpreter the graph runs in")  # fmt: skip
            lack = interpreter.lack(limits_of(self.package.settings)) if entry["type"] == "VideoServer" else None
            if lack is not None:
                raise ScriptError("VideoServer needs %s" % lack.what, config.file, entry["line"], lack.fix)

    def _failed(self, node: str, error: BaseException) -> None:
        event = {"type": "failure", "message": "node '%s' raised %s" % (node, described(error))}
        self.port.tell(wire.EVENT, {**event, "item": 0, "traceback": script_traceback(error)})
        self.count('panglot_graph_node_failures_total{node="%s"}' % INSTANCE.sub("", node))

    def _skipped(self, node: str, what: str) -> None:
        self.warn("node '%s' left out %s" % (node, what))

    def describe(self) -> Description:
        """The description of the API: the graph, and an example of what its server nodes take."""
        types = {entry["type"] for entry in self.package.options["servers"]}
        return {
            "entry": self.package.options["config"]["main"],
            "stages": [],
            "example": self._example(types),
            "summary": "",
        }

    def _example(self, types: Set[str]) -> ExampleRequest:
        """A picture beside the plugins or a video that may be named, for the line that shows an example request."""
        if "VideoServer" in types:
            root = self.package.settings.get("uri_root", "")
            names = sorted(os.listdir(root or self.package.folder))
            video = next((name for name in names if name.endswith((".mp4", ".mkv", ".avi"))), "")
            return {"kind": "video", "name": video, "may_be_named": bool(root)}
        if "ImageServer" not in types:
            return {"kind": "file", "type": "application/octet-stream"}
        endings = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png"}
        for name in sorted(os.listdir(self.package.folder)):
            if os.path.splitext(name)[1].lower() in endings:
                return {"kind": "file", "name": name, "type": endings[os.path.splitext(name)[1].lower()]}
        return {"kind": "file", "type": "image/jpeg"}

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """Pictures by their type; everything else is bytes to a server node."""
        media = media_type(content)
        return media if media.startswith("image/") else OCTETS, content

    def close(self) -> None:
        self.runtime.close()
        # Nodes run `__del__` on their own threads, which end with this process.
        for thread in self.runtime.threads:
            thread.thread.join(CLOSE_WITHIN)


def serve(dialect: Megflow, stages: None, port: Port, rerun: bool) -> str:
    """Pass requests to the graph and answers to the front, until the front says stop."""
    # It is made after `load`, where the gateway was made.
    dialect.gateway.tensor_adapter = dialect.tensor_adapter
    return dialect.gateway.serve(dialect.runtime)


DIALECT = Megflow
