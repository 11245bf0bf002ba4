"""The MegFlow dialect: a graph file in TOML, and a folder of plugins that register the nodes it names."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from panglot.dialects.megflow.settings import Settings
from panglot.dialects.megflow.types import types_of
from panglot.errors import StartError
from panglot.packages.package import Package, config_beside, outside
from panglot.settings.tomlfile import as_start_error
from panglot_worker.files import package_files
from panglot_worker.files.package_files import UnreadableFile
from panglot_worker.graphs import checking, configuration, picture, reading
from panglot_worker.graphs.checking import Types
from panglot_worker.graphs.configuration import Config
from panglot_worker.graphs.errors import GraphError, MissingVariable
from panglot_worker.graphs.ports import SERVERS

LOOKS_FOR = "a graph file in TOML with main and [[graphs]]"
GRAPH = re.compile(r"^[ \t]*(\[\[[ \t]*graphs[ \t]*\]\]|graphs[ \t]*=)", re.MULTILINE)
MAIN = re.compile(r"^[ \t]*main[ \t]*=", re.MULTILINE)
IN_FLIGHT = 64
"""Requests a graph may hold at once: enough for nodes that gather batches."""
LEDGER_BYTES = 16 << 20
"""Bytes about streams that a worker may store for its successor: `panglot_worker.video.ledger` has its slots there."""
VIEWERS = 1024
"""The same for graphs with a VideoServer: each client that follows a stream is one request, for as long as it stays."""


def detect(path: Path) -> Package | None:
    """The package at a path: a graph file, or a folder with one. Raises StartError when it cannot run."""
    config = find_config(path)
    if config is None:
        return None
    try:
        # Not checked: the settings may name other plugins, and are read only after this.
        return package_of(config, config.parent, checked=False)
    except MissingVariable:
        # The variables of a template come from settings. `arrange` reads the file again, with them.
        return Package(config.parent.name, config.parent, config, "megflow", "", reasons=(f"{config.name} has graphs",))


def arrange(package: Package, settings: Settings) -> Package:
    """The package with the folders and variables that its settings name, checked. Raises StartError."""
    plugin = Path(settings.plugin) if settings.plugin else package.folder
    package = package_of(package.script, plugin, settings.module, settings.dynamic)
    elsewhere = (*package.elsewhere, *outside(package.root, settings.uri_root))
    options = dict(package.options)
    if settings.ray and not Path(options["working"]).is_relative_to(options["module"]):
        # The current folder of this machine means nothing to a node of the cluster.
        options["working"] = options["plugin"]
    return dataclasses.replace(package, options=options, elsewhere=elsewhere)


# Finding the file


def find_config(path: Path) -> Path | None:
    """The graph file a path stands for; `DIR/DIR.toml` before others. Raises StartError when there are several."""
    if path.is_file():
        return path if path.suffix == ".toml" and looks_like_graph(path) else None
    usual = path / f"{path.name}.toml"
    if usual.is_file() and looks_like_graph(usual):
        return usual
    graphs = sorted(entry for entry in path.glob("*.toml") if entry.is_file() and looks_like_graph(entry))
    if len(graphs) > 1:
        names = ", ".join(entry.name for entry in graphs)
        raise StartError(
            f"there are several graph files: {names}",
            file=str(path),
            fix=f"name one: panglot serve {graphs[0]} -p {path}",
        )
    return graphs[0] if graphs else None


def looks_like_graph(path: Path) -> bool:
    try:
        text = package_files.text(path)
    except (OSError, UnreadableFile):
        return False
    return GRAPH.search(text) is not None and MAIN.search(text) is not None


# The package


def package_of(config_file: Path, plugin: Path, module: str = "", dynamic: str = "", checked: bool = True) -> Package:
    """The package of a graph file and a plugin folder. Raises StartError with file, line and fix."""
    if not plugin.is_dir():
        raise StartError(f"the plugin folder {plugin} does not exist", fix="-p FOLDER")
    plugin = plugin.resolve()
    module_path = Path(module).resolve() if module else module_path_of(plugin)
    if not plugin.is_relative_to(module_path):
        raise StartError(f"the plugin folder {plugin} is not inside the module path {module_path}")
    try:
        config = reading.read(str(config_file), dynamic)
        types = types_of(plugin, module_path) if checked else Types({}, set(), False)
        odd = checking.check(config, types)
    except MissingVariable as error:
        if not checked:
            raise
        raise as_start_error(error) from None
    except GraphError as error:
        raise as_start_error(error) from None
    servers = list(server_nodes(config, config.main, ""))
    refuse_same_ports(config, servers)
    working = working_folder(config, plugin, module_path)
    watched = any(server["type"] == "VideoServer" for server in servers)
    defaults: dict[str, Any] = {"slots": VIEWERS if watched else IN_FLIGHT}
    if servers:
        defaults["port"] = servers[0]["port"]
    return Package(
        name=plugin.name if config_file.resolve().parent == plugin else config_file.stem,
        folder=plugin,
        script=config_file.resolve(),
        dialect="megflow",
        entry=config.main,
        config=config_beside(config_file),
        reasons=(
            f"{config_file.name} has main and graphs",
            f"plugins are the modules of {plugin}",
            f"imports begin in {module_path}",
            f"runs in {working}",
        ),
        problems=tuple(odd),
        defaults=defaults,
        options={
            "config": configuration.to_json(config),
            "plugin": str(plugin),
            "module": str(module_path),
            "working": str(working),
            "servers": servers,
        },
        facts={"graph": picture.describe(config, types)},
        runs_to_its_end=not servers,
        retained_bytes=LEDGER_BYTES if watched else 0,
        whole=module_path if module else plugin,
        above=module_path,
        elsewhere=outside(module_path if module else plugin, *named_files(config, working)),
    )


def module_path_of(plugin: Path) -> Path:
    """Where imports begin: the current folder when the plugins are below it, else the folder above them.

    A folder with a dot in its name cannot be part of a module's name; imports begin below it then.
    """
    here = Path.cwd().resolve()
    for start in (here, plugin.parent):
        if plugin != start and plugin.is_relative_to(start) and "." not in str(plugin.relative_to(start)):
            return start
    return plugin


def working_folder(config: Config, plugin: Path, module_path: Path) -> Path:
    """The folder that relative paths in the graph begin at: the first candidate that has one of them.

    The platform runs a graph in the current folder.
    """
    candidates = list(dict.fromkeys((Path.cwd(), module_path, plugin.parent, plugin)))
    named = [text for text in texts(config) if not os.path.isabs(text)]
    for folder in candidates:
        if any(os.path.exists(folder / text) for text in named):
            return folder
    return candidates[0]


def named_files(config: Config, working: Path) -> list[str]:
    """The full paths that relative paths in the graph's arguments may mean."""
    return [str(working / text) for text in texts(config) if not os.path.isabs(text)]


def texts(config: Config) -> Iterator[str]:
    """Arguments that may be paths."""
    nodes = [*config.nodes, *(node for graph in config.graphs.values() for node in graph.nodes)]
    resources = [*config.resources, *(own for graph in config.graphs.values() for own in graph.resources)]
    waiting: list[Any] = [node.args for node in nodes] + [resource.args for resource in resources]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and ("/" in value or "." in value) and value.strip("./"):
            yield value


def server_nodes(config: Config, graph: str, path: str) -> Iterator[dict[str, Any]]:
    """The nodes that listen, also in static subgraphs, by the paths that the runtime gives them."""
    for node in config.graphs[graph].nodes:
        inner = f"{path}/{node.name}" if path else node.name
        if node.ty in SERVERS:
            about = {"node": inner, "type": node.ty, "port": node.args["port"], "line": node.position.line}
            yield {**about, "response": node.args.get("response", "")}
        elif node.ty in config.graphs:
            yield from server_nodes(config, node.ty, inner)


def refuse_same_ports(config: Config, servers: list[dict[str, Any]]) -> None:
    """Raise StartError where two server nodes of a graph ask for the same port."""
    taken: dict[int, str] = {}
    for server in servers:
        port, node = server["port"], server["node"]
        # 0 stands for any free port: several nodes may have it.
        if port and port in taken:
            raise StartError(
                f"'{taken[port]}' and '{node}' have the same port {port}", file=config.file, line=server["line"]
            )
        taken[port] = node
