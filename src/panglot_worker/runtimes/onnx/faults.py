"""The fault of an ONNX file that onnxruntime does not load: read from its bytes, and tried on tiny models.

onnxruntime words it at length, for its developers; here it is one line, with a fix.
"""

from __future__ import annotations

import mmap
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set, Tuple

from panglot_worker.runtimes.message import fields, inner, text

KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft",
                 "com.microsoft.nchwc", "com.microsoft.experimental", "com.ms.internal.nhwc",
                 "org.pytorch.aten")  # fmt: skip
"""The domains in which onnxruntime has operators."""
EXTERNAL = 1
DEEPEST = 30
"""Levels of graphs: onnxruntime reads them by protobuf, which refuses more than a hundred nested messages."""
LOWEST_OPSET, HIGHEST_OPSET = 7, 99


class Wrong(NamedTuple):
    """A fault and its fix."""

    problem: str
    fix: str


class OnnxContents(NamedTuple):
    """The contents of a file that decide whether it can be loaded."""

    ir_version: int
    opsets: Dict[str, int]
    domains: Set[str]
    """The domains of its operators, without those that the file defines itself."""
    external: List[Tuple[str, int]]
    """Files beside it that hold weights, and how large each must be."""
    levels: int
    """How many levels of graphs there are inside of operators."""


def wrong(path: str, load: Callable[[bytes], Any]) -> Wrong:
    """Why the file at a path cannot be loaded; empty where it is not known. `load` loads a model from its bytes."""
    try:
        contents = read(path)
    except (ValueError, IndexError, UnicodeDecodeError):
        return Wrong("this is not a complete ONNX file: it is cut off, or is something else",
                     "copy or export it again")  # fmt: skip
    for name, size in contents.external:
        beside = os.path.join(os.path.dirname(path), name)
        if not os.path.isfile(beside):
            return Wrong("its weights are in %s, which is not there" % name, "put it beside the model")
        if os.path.getsize(beside) < size:
            return Wrong("its weights are in %s, which has %d bytes of %d" % (name, os.path.getsize(beside), size),
                         "copy it again")  # fmt: skip
    strange = sorted(contents.domains - set(KNOWN_DOMAINS))
    if strange:
        return Wrong("it has operators of %s, which onnxruntime does not know" % " and ".join(strange),
                     "export it without them, or serve a plain script that registers their library")  # fmt: skip
    if contents.levels > DEEPEST:
        return Wrong("its graphs stand more than %d levels deep inside of each other" % DEEPEST,
                     "export it without so many nested branches and loops")  # fmt: skip
    return _too_new(contents, load) or Wrong("", "")


def read(path: str) -> OnnxContents:
    """The contents of a file. Raises ValueError, IndexError or UnicodeDecodeError for one that is not whole."""
    if not os.path.getsize(path):
        raise ValueError("the file is empty")
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    # Not closed by hand: that fails while frames of an exception refer to parts of it.
    return _contents(memoryview(mapped))


def _contents(whole: memoryview) -> OnnxContents:
    ir_version, opsets, own = 0, {}, set()
    domains: Set[str] = set()
    external: Dict[str, int] = {}
    levels = 0
    for number, value in fields(whole):
        if number == 1 and isinstance(value, int):
            ir_version = value
        elif number == 8:
            about = dict(fields(inner(value)))
            opsets[_domain(text(about.get(1, memoryview(b""))))] = int(about.get(2, 0))
        elif number == 25:
            own.add(text(dict(fields(inner(value))).get(10, memoryview(b""))))
        elif number == 7:
            levels = max(levels, _read_graphs(inner(value), domains, external))
    if not levels or not opsets:
        raise ValueError("there is no graph in it")
    return OnnxContents(ir_version, opsets, domains - own, sorted(external.items()), levels)


def _read_graphs(graph: memoryview, domains: Set[str], external: Dict[str, int]) -> int:
    """Note the contents of a graph and of all graphs inside of its operators. Returns how many levels there are."""
    waiting, deepest = [(graph, 1)], 1
    while waiting:
        current, level = waiting.pop()
        deepest = max(deepest, level)
        if level <= DEEPEST:
            waiting += [(nested, level + 1) for nested in _read_graph(current, domains, external)]
    return deepest


def _read_graph(graph: memoryview, domains: Set[str], external: Dict[str, int]) -> List[memoryview]:
    """Note the contents of one graph. Returns the graphs inside of its operators."""
    nested: List[memoryview] = []
    for number, value in fields(graph):
        if number == 1:
            for field, part in fields(inner(value)):
                if field == 7:
                    domains.add(text(part))
                elif field == 5:
                    nested += [inner(content) for kind, content in fields(inner(part)) if kind in (6, 11)]
        elif number == 5:
            tensor = list(fields(inner(value)))
            if (14, EXTERNAL) in [(field, part) for field, part in tensor if isinstance(part, int)]:
                about = dict(_pair(inner(part)) for field, part in tensor if field == 13)
                name = about.get("location", "")
                needed = int(about.get("offset", 0)) + int(about.get("length", 0))
                external[name] = max(needed, external.get(name, 0))
    return nested


def _pair(entry: memoryview) -> Tuple[str, str]:
    about = dict(fields(entry))
    return text(about[1]), text(about.get(2, memoryview(b"")))


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


# Too new


def _too_new(contents: OnnxContents, load: Callable[[bytes], Any]) -> Any:
    """Whether the installed onnxruntime is too old for the file, by trying tiny models of the same age."""
    opset = contents.opsets.get("", LOWEST_OPSET)
    if _loads(load, contents.ir_version, LOWEST_OPSET) and _loads(load, 8, opset):
        return None
    if not _loads(load, 8, LOWEST_OPSET):
        return None
    highest = next((known for known in range(HIGHEST_OPSET, LOWEST_OPSET, -1) if _loads(load, 8, known)), LOWEST_OPSET)
    if opset > highest:
        return Wrong("it has opset %d, and the installed onnxruntime knows up to %d" % (opset, highest),
                     "install a newer onnxruntime, or export with opset_version=%d" % highest)  # fmt: skip
    return Wrong("its format is IR version %d, newer than the installed onnxruntime" % contents.ir_version,
                 "install a newer onnxruntime, or save it with an older onnx")  # fmt: skip


def _loads(load: Callable[[bytes], Any], ir_version: int, opset: int) -> bool:
    try:
        load(b"".join(tiny_model(ir_version, opset)))
    except Exception:
        return False
    return True


def tiny_model(ir_version: int, opset: int) -> Iterator[bytes]:
    """The bytes of a model that only passes a number on."""
    node = _field(1, b"x") + _field(2, b"y") + _field(4, b"Identity")
    number = _field(1, bytes([8, 1]) + _field(2, _field(1, bytes([8, 1]))))
    graph = _field(1, node) + _field(2, b"g") + _field(11, _field(1, b"x") + _field(2, number))
    graph += _field(12, _field(1, b"y") + _field(2, number))
    yield bytes([8, ir_version]) + _field(7, graph) + _field(8, _field(1, b"") + bytes([16, opset]))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content
