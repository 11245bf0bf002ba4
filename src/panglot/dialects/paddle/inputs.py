"""Which of a script's arguments are its input, and of what kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from panglot.dialects.paddle import driver as drivers
from panglot.dialects.paddle.parser import Argument
from panglot.packages.source import Function

STRONG = re.compile(
    r"img|image|picture|photo|text|sentence|query|question|audio|wav|video|input|clean|noisy|_gt|_lq|np[yz]"
)
WEAK = re.compile(r"data|source|src|path|file")
"""What arguments are called that are inputs, and what they may be called where none is called so."""
UNLIKELY = re.compile(
    r"model|param|save|output|out_|_out|config|cfg|yaml|dict|vocab|label|class|size|width|height|shape|type|batch|num|log"
    r"|pretrain|weight|thresh|mean|std|benchmark|gpu|use_|enable|workers|name|density|mode"
)
TEXT = re.compile(r"text|sentence|query|question|title|prompt")
NAMES_OF_PATHS = re.compile(r"path|file|dir|folder|img|image")
FOLDERS = re.compile(r"dir$|folder|dir_")
PICTURES = re.compile(r"img|image|picture|photo|clean|noisy|_gt|_lq")
PICTURE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff")
OTHER_ENDINGS = (".npy", ".npz", ".txt", ".csv", ".wav", ".mp3", ".flac", ".mp4", ".avi", ".mov", ".json", ".pdf")


class Input(NamedTuple):
    """One input. `kind`: path, folder or text. `picture`: whether it is one."""

    name: str
    kind: str
    picture: bool


def classify(name: str, argument: Argument | None = None) -> Input:
    """Say what an argument of the script holds, judged by its name and default: text, a path or a folder, a picture or
    not.
    """
    word = name.lower()
    if TEXT.search(word) and not NAMES_OF_PATHS.search(word):
        return Input(name, "text", False)
    default = str(argument.value).lower() if argument is not None and argument.value else ""
    # The default says more than the name: what is called --img-dir and is a picture by default is opened as one.
    kind = "folder" if FOLDERS.search(word) and not default.endswith((*PICTURE_ENDINGS, *OTHER_ENDINGS)) else "path"
    if default.endswith(OTHER_ENDINGS):
        return Input(name, kind, False)
    return Input(name, kind, bool(PICTURES.search(word)) or default.endswith(PICTURE_ENDINGS))


def of_engine(
    driver: drivers.Driver | None, preprocess: Function, arguments: Sequence[Argument]
) -> tuple[list[Input], bool]:
    """The inputs of preprocess when it is called directly, and whether it wants the script's whole arguments."""
    own = parameter(preprocess)
    given = driver.input if driver is not None else None
    if isinstance(given, ast.Attribute):
        only_input = classify(given.attr, _declared(arguments, given.attr))
        return [only_input._replace(kind="folder") if drivers.lists(preprocess, own) else only_input], False
    whole = isinstance(given, ast.Name) and driver is not None and given.id == driver.arguments
    if whole or (driver is None and own in ("args", "arguments", "opt", "cfg")):
        return _among(drivers.attributes_read(preprocess, own), arguments), True
    named = _declared(arguments, own)
    only = _among((argument.name for argument in arguments), arguments) if named is None else []
    return [only[0] if len(only) == 1 else classify(own, named)], False


def of_driver(driver: drivers.Driver, methods: dict[str, Function], arguments: Sequence[Argument]) -> list[Input]:
    """The inputs that the driver, or a step it calls, reads from the script's arguments."""
    read = list(drivers.attributes_read(driver.node, driver.arguments))
    listed = set(drivers.folders_listed(driver.node, driver.arguments))
    for name, method in methods.items():
        if name not in ("__init__", "load_predictor"):
            read += drivers.attributes_read(method, parameter(method))
            listed |= set(drivers.folders_listed(method, parameter(method)))
    declared = [argument.name for argument in arguments]
    likely = _among(read, arguments) or _among(declared, arguments)
    if not likely:
        # Nothing is called as inputs are: whatever text it takes that is nothing else.
        texts = [argument.name for argument in arguments if argument.type == "str"]
        likely = [classify(name, _declared(arguments, name)) for name in texts if not UNLIKELY.search(name.lower())]
    return [field._replace(kind="folder") if field.name in listed else field for field in likely]


def parameter(method: Function) -> str:
    """The first parameter after self."""
    names = [argument.arg for argument in (*method.args.posonlyargs, *method.args.args)]
    return names[1] if len(names) > 1 else ""


def _among(names: Iterable[str], arguments: Sequence[Argument]) -> list[Input]:
    """The arguments that look like inputs; files of a model, such as fonts, only where no other argument does."""
    known = [name for name in dict.fromkeys(names) if _may_be(name, arguments)]
    strong = [name for name in known if STRONG.search(name.lower())]
    likely = strong or [name for name in known if WEAK.search(name.lower())]
    return [classify(name, _declared(arguments, name)) for name in likely]


def _may_be(name: str, arguments: Sequence[Argument]) -> bool:
    argument = _declared(arguments, name)
    if arguments and (argument is None or argument.type != "str"):
        return False
    return not UNLIKELY.search(name.lower())


def _declared(arguments: Sequence[Argument], name: str) -> Argument | None:
    return next((argument for argument in arguments if argument.name == name), None)
