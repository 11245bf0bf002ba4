"""From graph files to data: the template is rendered, the TOML read, every key checked, includes appended."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Pattern, Tuple

from panglot_worker.files import package_files
from panglot_worker.graphs import keys, positions, template
from panglot_worker.graphs.configuration import Config, Connection, GraphType, Node, PortRef, Position, Resource
from panglot_worker.graphs.errors import GraphError, near

TOP = ("main", "graphs", "nodes", "resources", "include")
GRAPH = ("name", "nodes", "resources", "inputs", "outputs", "connections")
CONNECTION = ("cap", "ports")
LINE = re.compile(r"\(?at line (\d+)")
TAG = re.compile(r"[0-9]{1,18}")
LONG_NUMBER = re.compile(r"[0-9_]{1000,}")


def read(path: str, dynamic_path: str = "") -> Config:
    """The configuration at a path, with variables for its template. Raises GraphError."""
    variables = _variables(text_of(dynamic_path), dynamic_path) if dynamic_path else {}
    return _Reader(variables).file(os.path.abspath(path), [])


def read_text(text: str, dynamic_text: str = "", file: str = "") -> Config:
    """The configuration in a text that is in no file; its includes are relative to the current folder."""
    variables = _variables(dynamic_text, "the dynamic text") if dynamic_text else {}
    return _Reader(variables).text(text, file, [])


def text_of(path: str) -> str:
    """The text of a file. Raises GraphError."""
    try:
        return package_files.text(path).replace("\r\n", "\n")
    except OSError as error:
        raise GraphError("%s" % (error.strerror or error), path) from None
    except package_files.UnreadableFile as error:
        raise GraphError(error.problem, path, error.line) from None


def _variables(text: str, file: str) -> Dict[str, Any]:
    return parse_toml(text, file, [])


def parse_toml(text: str, file: str, line_map: List[int]) -> Dict[str, Any]:
    """The table of a TOML text. Raises GraphError with the line in the file as it is written."""
    try:
        import tomllib as toml  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            import tomli as toml  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            raise GraphError(
                "reading TOML needs the package tomli before Python 3.11", fix="pip install tomli"
            ) from None
    long_key = keys.too_long(text)
    if long_key:
        problem = "a key has more than %d parts" % keys.MOST_PARTS
        raise GraphError(problem, file, mapped(line_map, long_key))
    try:
        table: Dict[str, Any] = toml.loads(text)
        return table
    except toml.TOMLDecodeError as error:
        at_line = LINE.search(str(error))
        line = int(at_line.group(1)) if at_line else text.rstrip("\n").count("\n") + 1
        said = re.sub(r"\s*\(at (line|end).*\)$", "", str(error))
        raise GraphError("this is not valid TOML: %s" % said, file, mapped(line_map, line)) from None
    except ValueError:
        raise GraphError("a number has too many digits", file, mapped(line_map, _line(LONG_NUMBER, text))) from None
    except RecursionError:
        raise GraphError("this is nested too deeply", file, mapped(line_map, _fullest(text))) from None


def _line(pattern: Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _fullest(text: str) -> int:
    """The line with the most brackets and dots: where something nests."""
    counts = [sum(map(line.count, "[{(.!-")) for line in text.split("\n")]
    return counts.index(max(counts)) + 1


def mapped(line_map: List[int], line: int) -> int:
    """The line of the template that a line of the rendered text came from."""
    return line_map[line - 1] if 0 < line <= len(line_map) else line


class _Reader:
    def __init__(self, variables: Dict[str, Any]) -> None:
        self.variables = variables

    def file(self, path: str, trail: List[str]) -> Config:
        return self.text(text_of(path), path, trail)

    def text(self, text: str, file: str, trail: List[str]) -> Config:
        try:
            rendered = template.render(text, self.variables, file)
            table = parse_toml(rendered.text, file, rendered.lines)
            source = _SourceFile(file, positions.lines(rendered.text), rendered.lines)
            return self._config(source, table, rendered.text, trail)
        except RecursionError:
            raise GraphError("this is nested too deeply", file, _fullest(text)) from None

    def _config(self, source: "_SourceFile", table: Dict[str, Any], text: str, trail: List[str]) -> Config:
        top = _Table(source, (), table, "the file")
        top.only(TOP)
        graphs = [self._graph(entry) for entry in top.tables("graphs", required=True)]
        nodes = [_node(entry) for entry in top.tables("nodes")]
        resources = [_resource(entry) for entry in top.tables("resources")]
        main = top.text("main")
        for index, name in enumerate(top.texts("include")):
            included = self._include(source, name, ("include", index), trail)
            graphs += included.graphs.values()
            nodes += included.nodes
            resources += included.resources
        _unique(graphs, "graph")
        _unique(nodes, "top-level node")
        _unique(resources, "top-level resource")
        if main not in {graph.name for graph in graphs}:
            fix = near(main, [graph.name for graph in graphs])
            raise GraphError("main = '%s': there is no such graph" % main, *source.position(("main",)), fix)
        return Config(main, {graph.name: graph for graph in graphs}, nodes, resources, source.file, text)

    def _include(self, source: "_SourceFile", name: str, path: Tuple[Any, ...], trail: List[str]) -> Config:
        base = os.path.dirname(source.file) if source.file else os.getcwd()
        # The original looked in the folder above the current one: its files are found too.
        tried = [os.path.join(base, name), os.path.join(os.path.dirname(os.getcwd()), name)]
        included = next((candidate for candidate in tried if os.path.isfile(candidate)), "")
        if not included:
            raise GraphError("include '%s': there is no such file beside this one" % name, *source.position(path))
        trail = [*trail, source.file]
        if os.path.abspath(included) in trail:
            shown = " -> ".join(os.path.basename(file) for file in [*trail, included])
            raise GraphError("the files include one another: %s" % shown, *source.position(path))
        return self.file(os.path.abspath(included), trail)

    def _graph(self, table: "_Table") -> GraphType:
        table.only(GRAPH)
        name = table.text("name")
        table.what = "graph '%s'" % name
        nodes = [_node(entry) for entry in table.tables("nodes")]
        resources = [_resource(entry) for entry in table.tables("resources")]
        lists = {word: table.tables(word) for word in ("inputs", "outputs", "connections")}
        inputs = [_connection(entry, True) for entry in lists["inputs"]]
        outputs = [_connection(entry, True) for entry in lists["outputs"]]
        _unique(nodes, "node of graph '%s'" % name)
        _unique(resources, "resource of graph '%s'" % name)
        _unique(inputs, "input of graph '%s'" % name)
        _unique(outputs, "output of graph '%s'" % name)
        connections = [_connection(entry, False) for entry in lists["connections"]]
        return GraphType(name, nodes, resources, inputs, outputs, connections, table.position)


class _SourceFile(NamedTuple):
    """A graph file, and how to find lines in it."""

    file: str
    lines: Dict[Tuple[Any, ...], int]
    line_map: List[int]

    def position(self, path: Tuple[Any, ...]) -> Position:
        return Position(self.file, mapped(self.line_map, positions.nearest(self.lines, path)))


class _Table:
    """One table of the file, read key by key."""

    def __init__(self, source: _SourceFile, path: Tuple[Any, ...], values: Dict[str, Any], what: str) -> None:
        self.source = source
        self.path = path
        self.values = values
        self.what = what

    @property
    def position(self) -> Position:
        return self.source.position(self.path)

    def error(self, problem: str, key: str = "", fix: str = "") -> GraphError:
        position = self.source.position((*self.path, key) if key else self.path)
        return GraphError("%s: %s" % (self.what, problem), *position, fix)

    def only(self, known: Tuple[str, ...]) -> None:
        for key in self.values:
            if key not in known:
                raise self.error("unknown key '%s'" % key, key, near(key, known))

    def value(self, key: str, kind: type, words: str, default: Any = None) -> Any:
        if key not in self.values:
            if default is None:
                raise self.error("'%s' is missing" % key, fix="add %s = %s" % (key, words))
            return default
        value = self.values[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error("%s = %r: expected %s" % (key, value, words), key)
        return value

    def text(self, key: str) -> str:
        value: str = self.value(key, str, "a name in quotes")
        if not value.strip():
            raise self.error("%s is empty" % key, key)
        return value

    def texts(self, key: str) -> List[str]:
        values: List[str] = self.value(key, list, "a list of names", default=[])
        if not all(isinstance(value, str) for value in values):
            raise self.error("%s = %r: expected a list of names" % (key, values), key)
        return values

    def number(self, key: str, least: int, default: Optional[int] = None) -> int:
        value: int = self.value(key, int, "a whole number from %d up" % least, default=default)
        if value < least:
            raise self.error("%s = %d: must be at least %d" % (key, value, least), key)
        return value

    def tables(self, key: str, required: bool = False) -> "List[_Table]":
        values = self.value(key, list, "an array of tables", default=None if required else [])
        singular = key[:-1]
        tables = []
        for index, value in enumerate(values):
            path = (*self.path, key, index)
            if not isinstance(value, dict):
                raise GraphError("%s: %s is a list of tables, not of %r" % (self.what, key, value),
                                 *self.source.position(path))  # fmt: skip
            what = "%s '%s'" % (singular, value["name"]) if isinstance(value.get("name"), str) else "a " + singular
            if self.path:
                what += " of %s" % self.what
            tables.append(_Table(self.source, path, value, what))
        return tables


def _node(table: _Table) -> Node:
    args = {key: plain(value) for key, value in table.values.items() if key not in ("name", "ty", "cloned", "res")}
    return Node(
        table.text("name"), table.text("ty"), table.number("cloned", 1, 1), table.texts("res"), args, table.position
    )


def _resource(table: _Table) -> Resource:
    args = {key: plain(value) for key, value in table.values.items() if key not in ("name", "ty")}
    return Resource(table.text("name"), table.text("ty"), args, table.position)


def _connection(table: _Table, named: bool) -> Connection:
    table.only(("name", *CONNECTION) if named else CONNECTION)
    name = table.text("name") if named else ""
    cap = table.number("cap", 1)
    words = table.texts("ports") if "ports" in table.values else table.value("ports", list, '["node:port"]')
    if not words:
        raise table.error("ports is empty", "ports", 'name at least one "node:port"')
    return Connection(cap, [_port(table, word, index) for index, word in enumerate(words)], name, table.position)


def _port(table: _Table, word: str, index: int) -> PortRef:
    names = word.split(":")
    if len(names) == 3 and TAG.fullmatch(names[2]) and all(names):
        return PortRef(names[0], names[1], int(names[2]))
    if len(names) != 2 or not all(names):
        position = table.source.position((*table.path, "ports", index))
        raise GraphError("%s: '%s' names no port" % (table.what, word), *position, 'write "node:port" or "node:port:0"')
    return PortRef(names[0], names[1], None)


def _unique(things: List[Any], what: str) -> None:
    seen: Dict[str, Any] = {}
    for thing in things:
        if thing.name in seen:
            first, position = seen[thing.name].position, thing.position
            problem = "a second %s is called '%s'; the first is in line %d" % (what, thing.name, first.line)
            raise GraphError(problem, position.file, position.line, "give it another name")
        seen[thing.name] = thing


def plain(value: Any) -> Any:
    """A TOML value as nodes get it: dates and times are text."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value if isinstance(value, (str, int, float, bool)) else value.isoformat()
