"""On which line each table of a TOML text begins.

The parser of the standard library gives values without lines. This module walks the same text and counts. It is exact
enough for a message that names a line, and it never fails: errors of the text are the parser's.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Tuple

Path = Tuple[Any, ...]

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""'
    r"|'''.*?'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{},=\n]"
    r"|[^\s\[\]{},=#\"']+",
    re.DOTALL,
)
_KEY_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^.\s]+)')


def lines(text: str) -> Dict[Path, int]:
    """Line numbers by path, such as `("graphs", 0, "nodes", 1)` or `("graphs", 0, "connections", 2, "ports", 0)`."""
    return _Walk(text).run()


def nearest(known: Dict[Path, int], path: Path) -> int:
    """The line of a path, or of the table it would be in."""
    while path not in known:
        path = path[:-1]
    return known[path]


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: Dict[Path, int] = {(): 1}
        self.counts: Dict[Path, int] = {}
        self.table: Path = ()
        self.tokens: List[Tuple[str, int]] = []
        line = 1
        for match in _TOKEN.finditer(text):
            token = match.group()
            if not token.startswith("#"):
                self.tokens.append((token, line))
            line += token.count("\n") if token != "\n" else 1
        self.at = 0

    def run(self) -> Dict[Path, int]:
        while self.at < len(self.tokens):
            token, line = self.tokens[self.at]
            if token == "\n":
                self.at += 1
            elif token == "[":
                self._header(line)
            else:
                self._pair(self.table, line)
        return self.lines

    def _header(self, line: int) -> None:
        several = self._peek(1) == "["
        words: List[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] != "\n":
            words.append(self.tokens[self.at][0])
            self.at += 1
        names = _key("".join(word for word in words if word not in "[]"))
        path: Path = ()
        for index, name in enumerate(names):
            path = (*path, name)
            last = index == len(names) - 1
            if last and several:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = (*path, self.counts[path])
        self.table = path
        self.lines.setdefault(path, line)

    def _pair(self, table: Path, line: int) -> None:
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] not in ("=", "\n", "}"):
            words.append(self.tokens[self.at][0])
            self.at += 1
        path = (*table, *_key("".join(words)))
        self.lines.setdefault(path, line)
        if self._peek() == "=":
            self.at += 1
            self._value(path)
        else:
            # This is no pair. It is skipped; the parser reports the error.
            self.at += 1

    def _value(self, path: Path) -> None:
        token = self._peek()
        if token == "{":
            self._inline(path)
        elif token == "[":
            self._array(path)
        else:
            while self._peek() not in ("", "\n", ",", "]", "}"):
                self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while self._peek() not in ("", "}"):
            if self._peek() in (",", "\n"):
                self.at += 1
            else:
                self._pair(path, self.tokens[self.at][1])
        self.at += 1

    def _array(self, path: Path) -> None:
        self.at += 1
        count = 0
        while self._peek() not in ("", "]"):
            if self._peek() in (",", "\n"):
                self.at += 1
                continue
            before = self.at
            self.lines.setdefault((*path, count), self.tokens[self.at][1])
            self._value((*path, count))
            count += 1
            if self.at == before:
                self.at += 1
        self.at += 1

    def _peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""


def _key(text: str) -> List[str]:
    return [a or b or c for a, b, c in _KEY_PART.findall(text)]
