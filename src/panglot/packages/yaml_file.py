"""A YAML file of a package: its values, and the line of each key.

PyYAML's safe loader parses the text and decides what a plain word means (`yes` is true, `3.10` is a number): the
platforms read these files in the same way. In addition the file is limited: in bytes, in levels, in the number of
values after aliases are written out, and in the length of a number. Keys that occur twice are an error, and so are
tags that name Python objects. Only values of JSON are allowed, because workers get the file as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panglot.errors import StartError
from panglot.packages.source import unreadable
from panglot.terminal.text import brief
from panglot_worker.files import package_files
from panglot_worker.files.package_files import DEEPEST, LARGEST_CONFIGURATION, UnreadableFile

if TYPE_CHECKING:
    import yaml

MOST_VALUES = 100_000
"""Keys and values of a file. An alias counts as many as the value that it stands for."""
LONGEST_NUMBER = 400
"""Characters of a number. YAML has numbers to the base of 60, and their digits cost time by their square."""

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_TEXTS = frozenset(_TAG + name for name in ("str", "timestamp", "value", "merge"))
"""Scalars that stay texts. Dates are among them: JSON has no dates."""
_WORDS_AND_NUMBERS = {_TAG + name: name for name in ("null", "bool", "int", "float")}


@dataclass(frozen=True)
class YamlFile:
    """A YAML file that was read."""

    path: Path
    table: dict[str, Any]
    """The values: dictionaries (their keys are text), lists, text, numbers, booleans and None."""
    root: yaml.Node | None
    """The mapping as PyYAML composed it, with the lines of its nodes."""

    def line(self, *keys: str | int) -> int:
        """The line of a key, or of an entry of a list by its index; without it, the line of the value around it."""
        return self._find(keys)[1]

    def text(self, *keys: str | int) -> str:
        """A scalar as it is written, without quotes: `3.10` where the value is 3.1. Empty where there is none."""
        node = self._find(keys)[0]
        return str(node.value) if node is not None and node.id == "scalar" else ""

    def error(self, problem: str, *keys: str | int, fix: str = "") -> StartError:
        """The error to raise about the value at these keys."""
        return StartError(brief(problem), file=str(self.path), line=self.line(*keys), fix=fix)

    def _find(self, keys: tuple[str | int, ...]) -> tuple[yaml.Node | None, int]:
        """The node at these keys, or None, and the line to name for it."""
        if self.root is None:
            return None, 1
        node, line = self.root, _line(self.root)
        for key in keys:
            entry = _entry(node, key)
            if entry is None:
                return None, line
            node, line = entry
        return node, line


def read(path: Path, most: int = LARGEST_CONFIGURATION) -> YamlFile:
    """Read a file of one YAML document, which is a mapping or empty. Raises StartError, with the line."""
    try:
        return parse(package_files.text(path, most), path)
    except UnreadableFile as error:
        raise unreadable(error) from None
    except OSError as error:
        raise StartError(f"it cannot be read: {error.strerror or error}", file=str(path)) from None


def parse(text: str, path: Path) -> YamlFile:
    """The YAML file that has this text. Raises StartError, with the line."""
    # Most packages have no YAML, and starts are quicker without the import.
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml.parse(text, loader), path)
        root = yaml.compose(text, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ": ".join(part for part in (error.context, error.problem) if part)
        raise _error(f"not valid YAML: {said}", path, mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        # The reader's error, about a character that YAML forbids, has no line.
        reason, character = getattr(error, "reason", str(error)), getattr(error, "character", None)
        position = text.find(chr(character)) if isinstance(character, int) else -1
        line = text.count("\n", 0, position) + 1 if position >= 0 else 0
        raise _error(f"not valid YAML: {reason}", path, line) from None
    if root is None or root.tag == _TAG + "null":
        return YamlFile(path, {}, None)
    if not _is(root, "mapping"):
        raise _error("this must be a mapping: `key: value` on each line", path, _line(root))
    return YamlFile(path, _Construction(path, yaml.constructor.SafeConstructor()).value(root), root)


def _check_events(events: Iterator[Any], path: Path) -> None:
    """Raise StartError for a text that would be expensive to compose: with many values, or many levels."""
    depth = documents = 0
    for number, event in enumerate(events):
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                raise _error("this has more than one YAML document, and one is read", path, line)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            if depth > DEEPEST:
                raise _too_deep(path, line)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
        # A mapping or sequence has two events. Aliases count here as one value: `_Construction` counts them in full.
        if number > 2 * MOST_VALUES:
            raise _too_many(path, line)


class _Construction:
    """Values from nodes. Each alias gets a copy of its value, and so costs as much as this value."""

    def __init__(self, path: Path, constructor: Any) -> None:
        self._path = path
        self._constructor = constructor
        self._left = MOST_VALUES
        self._open: set[int] = set()
        """The mappings and sequences around the current node, by id."""

    def value(self, node: yaml.Node) -> Any:
        """The value of a node. Raises StartError."""
        self._count(node)
        if _is(node, "scalar"):
            return self._scalar(node)
        if id(node) in self._open:
            raise _error("an alias stands for the value that it is part of", self._path, _line(node))
        if len(self._open) == DEEPEST:
            raise _too_deep(self._path, _line(node))
        self._open.add(id(node))
        value = self._mapping(node) if _is(node, "mapping") else self._sequence(node)
        self._open.remove(id(node))
        return value

    def _count(self, node: yaml.Node) -> None:
        self._left -= 1
        if self._left < 0:
            raise _too_many(self._path, _line(node))

    def _mapping(self, node: yaml.Node) -> dict[str, Any]:
        if node.tag != _TAG + "map":
            raise self._foreign(node)
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        names = set()
        for key, value in node.value:
            self._count(key)
            name = self._key(key)
            if name in names:
                raise _error(f"the key '{name}' is here twice", self._path, _line(key))
            names.add(name)
            if key.tag == _MERGE:
                merged = self._merged(value)
            else:
                own[name] = self.value(value)
        return {**merged, **own}

    def _key(self, node: yaml.Node) -> str:
        if not _is(node, "scalar") or not node.tag.startswith(_TAG):
            raise _error("a key must be text", self._path, _line(node))
        return self._checked_text(node)

    def _merged(self, node: yaml.Node) -> dict[str, Any]:
        """What `<<` adds to a mapping: the first source that has a key wins."""
        sources = node.value if _is(node, "sequence") else [node]
        if not all(_is(source, "mapping") for source in sources):
            raise _error("'<<' takes a mapping, or a list of mappings", self._path, _line(node))
        merged: dict[str, Any] = {}
        for source in sources:
            merged = {**self.value(source), **merged}
        return merged

    def _sequence(self, node: yaml.Node) -> list[Any]:
        if node.tag != _TAG + "seq":
            raise self._foreign(node)
        return [self.value(entry) for entry in node.value]

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag in _TEXTS:
            return self._checked_text(node)
        if node.tag not in _WORDS_AND_NUMBERS:
            raise self._foreign(node)
        kind = _WORDS_AND_NUMBERS[node.tag]
        if len(node.value) > LONGEST_NUMBER:
            raise _error(f"a number has more than {LONGEST_NUMBER} characters", self._path, _line(node))
        try:
            return getattr(self._constructor, f"construct_yaml_{kind}")(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            raise _error(f"'{node.value}' is no {kind}", self._path, _line(node)) from None

    def _checked_text(self, node: yaml.Node) -> str:
        text = str(node.value)
        if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
            raise _error("a text has a NUL or half a character", self._path, _line(node))
        return text

    def _foreign(self, node: yaml.Node) -> StartError:
        tag = node.tag.replace(_TAG, "!!")
        return _error(f"the tag {tag} is not read", self._path, _line(node), "write the value without a tag")


# Nodes


def _is(node: yaml.Node, kind: str) -> bool:
    return bool(node.id == kind)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _entry(node: yaml.Node, key: str | int) -> tuple[yaml.Node, int] | None:
    """What a mapping or sequence has at a key, with the line of the key."""
    if _is(node, "sequence") and isinstance(key, int):
        entries = node.value
        return (entries[key], _line(entries[key])) if 0 <= key < len(entries) else None
    if not _is(node, "mapping"):
        return None
    sources: list[yaml.Node] = []
    for name, value in node.value:
        if name.tag == _MERGE:
            sources = value.value if _is(value, "sequence") else [value]
        elif name.value == key:
            return value, _line(name)
    return next((entry for source in sources if (entry := _entry(source, key)) is not None), None)


# Errors


def _error(problem: str, path: Path, line: int, fix: str = "") -> StartError:
    return StartError(brief(problem), file=str(path), line=line, fix=fix)


def _too_deep(path: Path, line: int) -> StartError:
    return _error(f"this YAML nests too deeply: more than {DEEPEST} levels", path, line)


def _too_many(path: Path, line: int) -> StartError:
    return _error(
        f"this YAML has more than {MOST_VALUES} values, where an alias counts as what it stands for", path, line
    )
