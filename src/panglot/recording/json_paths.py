"""Places in JSON values, as people write them: `/user/name`, `/results[*]/id`, `/**/token`.

Segments are separated by a slash. `*` stands for any key or index, `[*]` for any index, `**` for any depth, none too.
In a key, a tilde is written as `~0` and a slash as `~1`, as in JSON Pointer, and a bracket `[` as `~2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SEGMENT = re.compile(r"\[(\*|[0-9]+)\]|/([^/\[]*)")
ANY, ANY_DEPTH = "*", "**"
Key = str | int


def escaped(key: str) -> str:
    """A key as a segment of a path."""
    return key.replace("~", "~0").replace("/", "~1").replace("[", "~2")


@dataclass(frozen=True)
class JsonPath:
    """A rule that matches places. `text` is the rule as it was written."""

    text: str
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Raises ValueError for a text that is no path."""
        segments, at = [], 0
        while at < len(text):
            parsed = SEGMENT.match(text, at)
            if parsed is None:
                raise ValueError(f"'{text}' is no path in JSON; write it as /user/name, /results[*]/id or /**/token")
            index, key = parsed[1], parsed[2]
            segments.append(index or key.replace("~2", "[").replace("~1", "/").replace("~0", "~"))
            at = parsed.end()
        if not segments or not text.startswith(("/", "[")):
            raise ValueError(f"'{text}' is no path in JSON; it begins with a slash, as in /user/name")
        return cls(text, tuple(segments))

    def matches(self, keys: Sequence[Key]) -> bool:
        return _matches(self.segments, tuple(str(key) for key in keys))


def _matches(segments: tuple[str, ...], keys: tuple[str, ...]) -> bool:
    if not segments:
        return not keys
    if segments[0] == ANY_DEPTH:
        return any(_matches(segments[1:], keys[start:]) for start in range(len(keys) + 1))
    return bool(keys) and segments[0] in (ANY, keys[0]) and _matches(segments[1:], keys[1:])


def replaced(value: Any, rules: Sequence[JsonPath], substitute: Callable[[Any], Any]) -> tuple[Any, int]:
    """The value with `substitute(old)` at every place that a rule matches, and the number of these places.

    Works without recursion, because the value may be as deep as its parser allows.
    """
    root: list[Any] = [value]
    count = 0
    # For each place: its container, its key, and for every rule the positions that the rule may have reached.
    start = frozenset((rule, position) for rule, each in enumerate(rules) for position in _closed(each.segments, 0))
    stack: list[tuple[Any, Any, frozenset[tuple[int, int]]]] = [(root, 0, start)]
    while stack:
        container, key, reached = stack.pop()
        if any(position == len(rules[rule].segments) for rule, position in reached):
            container[key] = substitute(container[key])
            count += 1
            continue
        inner = container[key]
        entries = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for name, _ in list(entries):
            further = _advanced(rules, reached, str(name))
            if further:
                stack.append((inner, name, further))
    return root[0], count


def _closed(segments: tuple[str, ...], position: int) -> list[int]:
    """The position, and the positions behind it if `**` stands for nothing."""
    positions = [position]
    while position < len(segments) and segments[position] == ANY_DEPTH:
        position += 1
        positions.append(position)
    return positions


def _advanced(rules: Sequence[JsonPath], reached: frozenset[tuple[int, int]], name: str) -> frozenset[tuple[int, int]]:
    further: set[tuple[int, int]] = set()
    for rule, position in reached:
        segments = rules[rule].segments
        if segments[position] == ANY_DEPTH:
            further.update((rule, next_) for next_ in _closed(segments, position))
        elif segments[position] in (ANY, name):
            further.update((rule, next_) for next_ in _closed(segments, position + 1))
    return frozenset(further)
