"""The handler of a script, found in its syntax tree: a function, or the only class."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, bound_elsewhere, classes, functions, imported, parse
from panglot_worker.files.package_files import content_if_any

BUILT_IN = {
    "image_classifier": "ImageClassifier", "image_segmenter": "ImageSegmenter", "object_detector": "ObjectDetector",
    "text_classifier": "TextClassifier", "base_handler": "BaseHandler", "vision_handler": "VisionHandler",
    "text_handler": "TextHandler", "densenet_handler": "DenseNetHandler",
    "dali_image_classifier": "DALIImageClassifier", "trt_llm_handler": "TRTLLMHandler", "vllm_handler": "VLLMHandler",
}  # fmt: skip
"""The handlers that the platform brings, and their classes."""
SHIMMED = (
    "image_classifier", "image_segmenter", "object_detector", "text_classifier", "base_handler", "vision_handler",
    "text_handler",
)  # fmt: skip
"""The handlers among them that Panglot brings too. For the rest, torchserve must be installed."""
FUNCTION = "handle"
FORM = "def handle(data, context), or one class with initialize(self, context) and handle(self, data, context)"


@dataclass(frozen=True)
class Handler:
    """A script with a handler in it."""

    script: Path
    entry: str
    """The function, or `Class.handle`."""
    line: int
    imports_platform: bool

    @property
    def reason(self) -> str:
        what = "class " + self.entry.partition(".")[0] if "." in self.entry else f"{self.entry}(data, context)"
        return f"{self.script.name}:{self.line} defines {what}"


def might_be(script: Path) -> bool:
    """Whether a look into a script's tree is worth the time."""
    text = content_if_any(script)
    return FUNCTION.encode() in text or b"ts.torch_handler" in text


def find(script: Path) -> Handler | None:
    """The handler of a script that was clearly written for this platform; else None. Raises StartError."""
    if not might_be(script):
        return None
    tree = parse(script)
    platform = next((line for name, line in imported(tree).items() if name.partition(".")[0] == "ts"), 0)
    function = functions(tree.body).get(FUNCTION)
    if function is not None and _takes(function, 2) and (platform or _named_like_data(function)):
        return Handler(script, FUNCTION, function.lineno, bool(platform))
    kinds = [node for node in classes(tree) if _is_handler(node, bool(platform))]
    if kinds:
        return Handler(script, f"{kinds[-1].name}.handle", kinds[-1].lineno, bool(platform))
    return None


def _named_like_data(function: Function) -> bool:
    """Whether a function `handle` takes what this platform gives: many other programs have a `handle` too."""
    names = [argument.arg for argument in function.args.args]
    return names[1] in ("context", "ctx", "_context", "_") and names[0] in (
        "data",
        "_data",
        "batch",
        "requests",
        "rows",
    )


def _takes(function: Function, count: int) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    return len(named) - len(arguments.defaults) <= count <= len(named) or (
        arguments.vararg is not None and len(named) <= count
    )


def _is_handler(node: ast.ClassDef, platform: bool) -> bool:
    """Whether a class derives from a handler of the platform, or has its two methods."""
    methods = functions(node.body)
    if platform and any(ast.unparse(base).endswith(("Handler", *BUILT_IN.values())) for base in node.bases):
        return True
    initialize, handle = methods.get("initialize"), methods.get("handle")
    if initialize is None or not _takes(initialize, 2):
        return False
    return _takes(handle, 3) if handle is not None else platform and _sets_handle(node)


def _sets_handle(node: ast.ClassDef) -> bool:
    """Whether a class assigns its `handle`, as in `self.handle = MicroBatching(self)`."""
    return any(
        isinstance(child, ast.Attribute) and child.attr == FUNCTION and isinstance(child.ctx, ast.Store)
        for child in ast.walk(node)
    )


def named(script: Path, function: str) -> Handler:
    """The handler of a script that a manifest names. Raises StartError where the platform would refuse it."""
    tree = parse(script)
    platform = any(name.partition(".")[0] == "ts" for name in imported(tree))
    wanted = function or FUNCTION
    defined = functions(tree.body)
    if wanted in defined:
        if not _takes(defined[wanted], 2) and not defined[wanted].decorator_list:
            problem = f"{wanted}({ast.unparse(defined[wanted].args)}) must take two arguments"
            raise StartError(problem, file=str(script), line=defined[wanted].lineno, fix=FORM)
        return Handler(script, wanted, defined[wanted].lineno, platform)
    elsewhere = bound_elsewhere(tree)
    if wanted in elsewhere:
        return Handler(script, wanted, elsewhere[wanted], platform)
    return _only_class(script, tree, platform, function)


def _only_class(script: Path, tree: ast.Module, platform: bool, function: str) -> Handler:
    kinds = classes(tree)
    if len(kinds) == 1:
        node = kinds[0]
        if not node.bases and FUNCTION not in functions(node.body) and not _sets_handle(node):
            fix = "def handle(self, data, context)"
            raise StartError(f"{node.name} has no handle", file=str(script), line=node.lineno, fix=fix)
        return Handler(script, f"{node.name}.handle", node.lineno, platform)
    if kinds or not _binds_unseen(tree):
        names = ", ".join(node.name for node in kinds) or "none"
        missing = f"there is no function {function or FUNCTION}"
        problem = f"{missing}, and a handler needs exactly one class; the classes are: {names}"
        raise StartError(problem, file=str(script), line=kinds[1].lineno if len(kinds) > 1 else 0, fix=FORM)
    return Handler(script, function or FUNCTION, 0, platform)


def _binds_unseen(tree: ast.Module) -> bool:
    """Whether a module may have classes and functions that its first level does not show."""
    blocks = (ast.If, ast.Try, ast.With)
    stars = any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names) for node in tree.body
    )
    return stars or any(isinstance(node, blocks) for node in tree.body)
