"""The script's service object: found, constructed, and inspected for its own methods."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple, Type

from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError
from panglot_worker.files.package_files import json_value
from panglot_worker.scripts.loading import import_script

PLATFORM = ("model_service", "mms", "hiai")
"""Top-level modules whose classes are the platform's, never the script's."""


def find(package: Package) -> Type[Any]:
    """The service class: the script's only leaf class over a base of the platform, or the engine's default service."""
    base: Type[Any] = _platform(package).ModelService
    importlib.import_module("model_service.log").show_own_loggers()
    default: str = package.options.get("default_service", "")
    if default:
        module, _, name = default.partition(":")
        service: Type[Any] = getattr(importlib.import_module(module), name)
        return service
    return pick(import_script(package.script), base, package)


def _platform(package: Package) -> Any:
    """The platform's own module, imported before the script: else a stand-in beside it, for local tests, would win."""
    sys.path.insert(0, package.platform("always"))
    try:
        return importlib.import_module("model_service.model_service")
    finally:
        del sys.path[0]


def pick(module: ModuleType, base: Type[Any], package: Package) -> Type[Any]:
    """The script's only leaf class over `base`. Raises ScriptError when it has none, or several."""
    seen = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    leaves: List[Type[Any]] = []
    for value in seen:
        if value not in leaves and value.__module__.partition(".")[0] not in PLATFORM and not _is_base(value):
            leaves.append(value)
    if len(leaves) == 1:
        return leaves[0]
    if not leaves:
        wanted = package.options.get("base", "SingleNodeService")
        raise ScriptError(
            "there is no class in it that derives from a base class of the platform",
            package.script,
            fix="derive one class from %s" % wanted,
        )
    names = " and ".join("%s (line %d)" % (value.__name__, line_of(value)) for value in leaves)
    raise ScriptError(
        "%s could all be the service" % names,
        package.script,
        line_of(leaves[1]),
        fix="the platform takes exactly one class that no other derives from",
    )


def _is_base(value: Type[Any]) -> bool:
    return bool(type.__subclasses__(value))


def line_of(thing: Any) -> int:
    try:
        return inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return 0


def summary(kind: Type[Any]) -> str:
    """The first paragraph of what the author wrote about the class, or about its file."""
    text = kind.__doc__ or getattr(sys.modules.get(kind.__module__), "__doc__", "") or ""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def construct(kind: Type[Any], package: Package) -> Any:
    """The service, constructed with the arguments the platform gave. Raises ScriptError when it does not take them."""
    names, values = arguments(kind, package)
    _check_constructor(kind, names, package.script)
    service = kind(*values)
    for name, value in (("model_name", package.options["model_name"]), ("model_path", package.options["model_path"])):
        if not hasattr(service, name):
            try:
                setattr(service, name, value)
            except AttributeError:
                pass  # the script has closed its class to new attributes
    return service


def arguments(kind: Type[Any], package: Package) -> Tuple[List[str], List[Any]]:
    """What the constructor of a service is called with, by its base class."""
    name, path = package.options["model_name"], package.options["model_path"]
    if takes_raw(kind):
        return ["model_path"], [path]
    if derives(kind, "mms.model_service.mxnet_model_service", "MXNetBaseService"):
        return ["model_name", "model_dir", "manifest"], [name, path, manifest(path, name)]
    return ["model_name", "model_path"], [name, path]


def takes_raw(kind: Type[Any]) -> bool:
    """Whether a service gets the body as bytes."""
    spark = ("model_service.spark_model_service", "SparkServingBaseService")
    return derives(kind, "model_service.python_model_service", "XgSklServingBaseService") or derives(kind, *spark)


def derives(kind: Type[Any], module: str, name: str) -> bool:
    """Whether a class derives from the class `name` of a module; it cannot while that module was never imported."""
    base = getattr(sys.modules.get(module), name, None)
    return isinstance(base, type) and issubclass(kind, base)


def _check_constructor(kind: Type[Any], names: List[str], script: str) -> None:
    try:
        signature = inspect.signature(kind)
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        code: Any = getattr(kind.__init__, "__code__", None)
        raise ScriptError(
            "%s cannot be constructed with (%s): %s" % (kind.__name__, ", ".join(names), error),
            getattr(code, "co_filename", script),
            getattr(code, "co_firstlineno", 0),
            fix="def __init__(self, %s)" % ", ".join(names),
        ) from None


def manifest(folder: str, name: str) -> Dict[str, Any]:
    """The manifest of an MXNet package: its own MANIFEST.json, or one made from the files that are there."""
    path = os.path.join(folder, "MANIFEST.json")
    if os.path.isfile(path):
        own: Dict[str, Any] = json_value(path)
        return own
    signature: Any = {"inputs": [], "outputs": []}
    if os.path.isfile(os.path.join(folder, "signature.json")):
        signature = "signature.json"
    return {"Model": {"Model-Name": name, "Service": "customize_service.py", "Signature": signature}}


def input_names(manifest: Dict[str, Any], folder: str) -> List[str]:
    """The inputs an MXNet signature names."""
    signature = manifest.get("Model", {}).get("Signature", {})
    if isinstance(signature, str):
        signature = json_value(os.path.join(folder, signature))
    return [str(entry.get("data_name", "")) for entry in signature.get("inputs", ())]


def has_own(service: Any, method: str) -> bool:
    """Whether a method is the script's, not a base class's."""
    if method in getattr(service, "__dict__", {}):
        return True
    for kind in type(service).__mro__:
        if method in vars(kind):
            return kind.__module__.partition(".")[0] not in PLATFORM
    return False


def default_loader(service: Any) -> Callable[[], None]:
    """The function that loads the model of the base class's `_inference`; does nothing where the script has its own."""
    loader = getattr(service, "prepare_default_inference", None)
    if loader is None or has_own(service, "_inference") or has_own(service, "inference"):
        return lambda: None
    load: Callable[[], None] = loader
    return load
