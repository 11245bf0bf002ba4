"""The files of a package that are read before any of its code runs.

A package may be broken, or made to do harm: a pipe instead of a file blocks its reader, and some kilobytes of
TOML, JSON or Python become gigabytes when they are parsed. So only regular files are read, up to a size, and text that
nests too deeply is refused with a sentence.
"""

from __future__ import annotations

import ast
import json
import os
import stat
import warnings
from typing import Any, List, Tuple, Union

LARGEST_CONFIGURATION = 1 << 20
LARGEST_SCRIPT = 16 << 20
MOST_MARKS = 1_000_000
"""Marks of punctuation and ends of lines of a script. Each may become a node of its syntax tree: some 700 bytes."""
DEEPEST = 100
"""Levels of a JSON value."""
LONGEST_KEY = 32
"""Parts of a dotted key of TOML. The standard library's parser takes memory by their square."""
PIECE = 1 << 20

PathLike = Union[str, "os.PathLike[str]"]
_NO_MARKS = bytes(code for code in range(256) if chr(code).isalnum() or code >= 128 or chr(code) in "_ \t\r")


class UnreadableFile(ValueError):
    """A file of a package that is not read. `problem` is a sentence about it."""

    def __init__(self, problem: str, file: PathLike, line: int = 0) -> None:
        super().__init__("%s%s: %s" % (os.fspath(file), ":%d" % line if line else "", problem))
        self.problem = problem
        self.file = os.fspath(file)
        self.line = line


# Bytes and text


def content(path: PathLike, most: int) -> bytes:
    """All of a regular file of at most so many bytes. Raises UnreadableFile, or OSError."""
    pieces: List[bytes] = []
    with _opened(path) as file:
        # One byte more than allowed tells "too large"; st_size may lie, or change while we read.
        left = most + 1
        while left > 0:
            piece = file.read(min(left, PIECE))
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            left -= len(piece)
        size = os.fstat(file.fileno()).st_size
    raise UnreadableFile("it has %d bytes, and at most %d are read" % (max(size, most + 1), most), path)


def beginning(path: PathLike, size: int) -> bytes:
    """The first bytes of a regular file. Raises UnreadableFile, or OSError."""
    with _opened(path) as file:
        return bytes(file.read(size))


def content_if_any(path: PathLike, most: int = LARGEST_SCRIPT) -> bytes:
    """All of a file that may be of interest; empty where it cannot be read, or is no regular file of such a size."""
    try:
        return content(path, most)
    except (OSError, UnreadableFile):
        return b""


def text(path: PathLike, most: int = LARGEST_CONFIGURATION) -> str:
    """The text of a file, which is UTF-8. Raises UnreadableFile, or OSError."""
    raw = content(path, most)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("this is no UTF-8 text (byte %d)" % error.start, path, line) from None


def _opened(path: PathLike) -> Any:
    """A regular file, open for reading. Raises UnreadableFile for anything else, without waiting for it."""
    # A pipe that nobody writes to, and some devices, would block their reader.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFile("this is no regular file", path)
        return os.fdopen(descriptor, "rb", 0)
    except BaseException:
        os.close(descriptor)
        raise


# The content, parsed


def tree(path: PathLike) -> ast.Module:
    """The syntax tree of a script. Raises SyntaxError, UnreadableFile, or OSError."""
    return parsed(content(path, LARGEST_SCRIPT), path)


def parsed(source: bytes, path: PathLike) -> ast.Module:
    """The syntax tree of the source of a script. Raises SyntaxError or UnreadableFile."""
    marks = len(source.translate(None, _NO_MARKS))
    if marks > MOST_MARKS:
        problem = "it is too long to be looked at: %d marks and lines, and at most %d are read" % (marks, MOST_MARKS)
        raise UnreadableFile(problem, path)
    try:
        with warnings.catch_warnings():
            # Python warns of odd escapes and comparisons again when the script runs; once is enough.
            warnings.simplefilter("ignore")
            return ast.parse(source, os.fspath(path))
    except SyntaxError:
        raise
    except ValueError as error:
        raise UnreadableFile("not readable as Python: %s" % error, path) from None
    except (RecursionError, MemoryError, SystemError):
        # CPython 3.11 raises the last of these where it should raise the first.
        raise UnreadableFile("it nests too deeply to be read as Python", path) from None


def json_value(path: PathLike, most: int = LARGEST_CONFIGURATION) -> Any:
    """The value in a file of JSON. Raises UnreadableFile with the line, or OSError."""
    return json_in(text(path, most), path)


def json_in(source: str, path: PathLike, strict: bool = True) -> Any:
    """The value in a text of JSON, which may begin with a mark of its encoding. Raises UnreadableFile with the line."""
    try:
        value = json.loads(source[1:] if source.startswith("\ufeff") else source, strict=strict)
    except json.JSONDecodeError as error:
        raise UnreadableFile("not valid JSON: %s" % error.msg, path, error.lineno) from None
    # CPython refuses integers of more than 4300 digits since 3.11, and in security releases of older versions.
    except ValueError:
        raise UnreadableFile("not valid JSON: a number has too many digits", path) from None
    except RecursionError:
        raise UnreadableFile("this JSON nests too deeply", path) from None
    if _is_deep(value):
        raise UnreadableFile("this JSON nests too deeply: more than %d levels" % DEEPEST, path)
    return value


def _is_deep(value: Any) -> bool:
    """Whether a value has more levels than a recursive function may safely walk."""
    waiting: List[Tuple[Any, int]] = [(value, 1)]
    while waiting:
        entry, level = waiting.pop()
        if not isinstance(entry, (dict, list)):
            continue
        if level > DEEPEST:
            return True
        inside = entry.values() if isinstance(entry, dict) else entry
        waiting.extend((inner, level + 1) for inner in inside if isinstance(inner, (dict, list)))
    return False
