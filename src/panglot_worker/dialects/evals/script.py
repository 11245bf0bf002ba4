"""The script itself: found, imported as `evals.eval`, and called as its generation of the convention wants.

Generation 3: `create_net(configs)` and `net_inference(model, reqs)` return a code and a message at the end.
Generation 2: `net_init(configs)` and `net_inference(model, reqs)` return an error text at the end.
Generation 1: both take and give JSON text, without decorators.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence

from panglot_worker.dialects.base import Package
from panglot_worker.dialects.evals import oldpython
from panglot_worker.dialects.evals.failures import FAILED, Failed, WrongShape
from panglot_worker.errors import ScriptError

REQID = "xx"
"""What scripts saw as the id of every request."""
GOOD = (0, 200)


def load(package: Package) -> "Script":
    """Import the script. Raises ScriptError, and what the script raises."""
    options = package.options
    sys.argv = [""]
    evals = _platform(package)
    folders: List[str] = list(options.get("import_folders", ()))
    # On the platform the script's folder was the package `evals` itself: its helpers are `evals.NAME` too.
    evals.__path__ = [*evals.__path__, package.folder]
    for name in ("utils", "mxnet_base"):
        inner: Any = importlib.import_module("evals." + name)
        inner.__path__ = [*inner.__path__, os.path.join(package.folder, name)]
    # The first two are the script's folder and the platform's modules, as `loading.enter` has put them.
    sys.path[:] = sys.path[:2] + [folder for folder in folders if folder not in sys.path[:2]] + sys.path[2:]
    _lend_path(package, folders)
    finder = oldpython.install([package.folder, *folders], options.get("own_helpers", ()))
    module = _import(package, finder)
    if interface(module, "create_net", package.script) is not None:
        return Third(package, module)
    start = interface(module, "net_init", package.script)
    if start is not None:
        return Second(package, module) if hasattr(start, "evals_handler") else First(package, module)
    raise ScriptError(
        "there is no create_net in it", package.script, fix="define create_net(configs) and net_inference(model, reqs)"
    )


def interface(module: ModuleType, name: str, file: str) -> Optional[Callable[..., Any]]:
    """The function with the decorator of that name, whatever it is called; else the one that is called so.

    Raises ScriptError when several are decorated and none of them has the platform's name.
    """
    functions = {bound: value for bound, value in vars(module).items() if isinstance(value, FunctionType)}
    decorated = {bound: value for bound, value in functions.items() if getattr(value, "evals_handler", "") == name}
    chosen = decorated.get(name) or (next(iter(decorated.values())) if decorated else getattr(module, name, None))
    if name not in decorated and len({id(value) for value in decorated.values()}) > 1:
        fix = "call one of them %s" % name
        raise ScriptError("%s all have the decorator %s_handler" % (" and ".join(decorated), name), file, fix=fix)
    return chosen if callable(chosen) else None


def _platform(package: Package) -> Any:
    """Our own `evals`, also where the user's package has a copy of the platform's."""
    sys.path.insert(0, package.platform("always"))
    try:
        importlib.import_module("evals.utils")
        return sys.modules["evals"]
    finally:
        sys.path.pop(0)


def _lend_path(package: Package, folders: Sequence[str]) -> None:
    """Let processes that the script starts import `evals` and the helpers, by PYTHONPATH as on the platform.

    Those of multiprocessing have the import path of this process instead.
    """
    python = os.path.join(package.run_folder, "serving", "python")
    sys.path.append(python)
    sources = [folder for folder in folders if os.path.basename(folder) == "src"]
    given = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [package.platform("always"), python, *sources, *([given] if given else [])]
    )


def _import(package: Package, finder: oldpython.Finder) -> ModuleType:
    """The script as the module `evals.eval`, whatever its file is called."""
    name = "evals.eval"
    spec = importlib.util.spec_from_file_location(name, package.script, loader=finder.loader(name, package.script))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.modules["evals"].eval = module  # type: ignore[attr-defined]
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("evals."):
            fix = "put it beside %s" % os.path.basename(package.script)
            raise ScriptError("there is no %s" % error.name, package.script, fix=fix) from error
        raise
    return module


class Script:
    """A script of some generation. `create` once, then `call` with one batch at a time."""

    needs_files = False
    """Whether requests name files instead of holding bytes."""

    def __init__(self, package: Package, module: ModuleType) -> None:
        self.file = package.script
        self.module = module
        self.model: Any = None
        self.infer = self._function("net_inference")
        self.prepare = interface(module, "net_preprocess", self.file)

    def _function(self, name: str) -> Callable[..., Any]:
        function = interface(self.module, name, self.file)
        if function is None:
            raise ScriptError("there is no %s in it" % name, self.file, fix="define %s(model, reqs)" % name)
        return function

    def _with_id(self, function: Callable[..., Any], model: Any, value: Any) -> Any:
        """Call a function of the script. Decorated functions take the request's id too."""
        return function(model, value, REQID) if hasattr(function, "evals_handler") else function(model, value)

    def create(self, configs: Dict[str, Any]) -> None:
        """Raises ScriptError when the script says no, and what it raises."""
        raise NotImplementedError

    def call(self, reqs: Sequence[Dict[str, Any]]) -> List[Any]:
        """The results of one call. Raises Failed for the code and message of the whole call, and what it raises."""
        raise NotImplementedError

    def preprocess(self, req: Dict[str, Any]) -> Dict[str, Any]:
        """The request as `net_preprocess` makes it. Raises Failed for its code and message, and what it raises."""
        if self.prepare is None:
            return req
        changed, code, message = self._with_id(self.prepare, self.model, req)
        _refuse(code, message, changed is None)
        if not isinstance(changed, dict):
            raise WrongShape("net_preprocess must return a request, not %s" % type(changed).__name__)
        return changed

    def _refused(self, message: Any, code: Any = None) -> ScriptError:
        """The error of a script that does not start. Raises the script's own exception where a decorator caught one."""
        raised = getattr(message, "error", None)
        if raised is not None:
            raise raised
        with_code = " with code %s" % (code,) if code is not None else ""
        return ScriptError("the script did not start%s: %s" % (with_code, message or "no message"), self.file)


def _refuse(code: Any, message: Any, returned_nothing: bool) -> None:
    """Raise Failed for the message of a call, unless it is empty: the message decides, not the code.

    Only where the call returned no results, the code decides too. Raises the exception that a decorator caught.
    """
    # The decorators turn every exception into a message. The exception itself lets the log name the line.
    raised = getattr(message, "error", None)
    if raised is not None:
        raise raised
    silent = message in ("", b"", None)
    if (silent and not returned_nothing) or (isinstance(code, int) and code in GOOD):
        return
    message = "the script says no more than this code" if silent else message
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
    text = text if isinstance(text, str) else json.dumps(text, default=str)
    raise Failed(code if isinstance(code, int) and not isinstance(code, bool) else FAILED, text)


def _results(rets: Any) -> List[Any]:
    """The results of a call; an empty dict is an empty list. Raises WrongShape for None, and for all else but lists."""
    if rets is None:
        # The platform's own text: Python 2 says so of `map(function, None)`.
        raise WrongShape("argument 2 to map() must support iteration")
    if isinstance(rets, dict):
        if rets:
            raise WrongShape("net_inference must return a list of results, not a dict")
        return []
    if not isinstance(rets, (list, tuple)):
        raise WrongShape("net_inference must return a list of results, not %s" % type(rets).__name__)
    return list(rets)


class Third(Script):
    """A script whose functions return a code and a message at the end."""

    def create(self, configs: Dict[str, Any]) -> None:
        """Run `create_net`. Raises ScriptError for a code other than 0 and 200."""
        returned = self._function("create_net")(configs)
        try:
            self.model, code, message = returned
        except (TypeError, ValueError):
            fix = "return model, 0, ''"
            raise ScriptError("create_net must return a model, a code and a message", self.file, fix=fix) from None
        if isinstance(code, bool) or code not in GOOD:
            raise self._refused(message, code)

    def call(self, reqs: Sequence[Dict[str, Any]]) -> List[Any]:
        rets, code, message = self._with_id(self.infer, self.model, list(reqs))
        _refuse(code, message, rets is None)
        return _results(rets)


class WithFiles(Script):
    """The generations before: the platform wrote every picture to a file, and named it."""

    needs_files = True

    def _older(self, configs: Dict[str, Any]) -> Dict[str, Any]:
        """The configuration with the names of its time as well."""
        names = {"tar_files": configs["model_files"], "custom_values": configs["custom_params"]}
        return {**configs, **names, "image_width": configs["image_width"]}


class Second(WithFiles):
    """A script whose functions return an error text at the end."""

    def create(self, configs: Dict[str, Any]) -> None:
        """Run `net_init`. Raises ScriptError for an error text that is not empty."""
        returned = self._function("net_init")(self._older(configs))
        try:
            self.model, message = returned
        except (TypeError, ValueError):
            raise ScriptError(
                "net_init must return a model and an error text", self.file, fix="return model, ''"
            ) from None
        if message:
            raise self._refused(message)

    def call(self, reqs: Sequence[Dict[str, Any]]) -> List[Any]:
        returned = self._with_id(self.infer, self.model, list(reqs))
        # Three values: the script raised, and the decorator has put a code between them.
        rets, message = returned if len(returned) == 2 else (returned[0], returned[-1])
        _refuse(FAILED, message, False)
        return _results(rets)


class First(WithFiles):
    """A script whose functions take and give JSON text."""

    def create(self, configs: Dict[str, Any]) -> None:
        self.model = self.module.net_init(json.dumps(self._older(configs)))
        if not isinstance(self.model, dict):
            raise ScriptError("net_init must return a dict", self.file, fix="return {'error': '', ...}")
        if self.model.get("error"):
            raise self._refused(self.model["error"])

    def call(self, reqs: Sequence[Dict[str, Any]]) -> List[Any]:
        named = [{**req, "data": _without_bodies(req["data"])} for req in reqs]
        text = self.infer(self.model, json.dumps({"reqid": REQID, "reqs": named}))
        value = text if isinstance(text, dict) else json.loads(text)
        _refuse(FAILED, value.get("error", ""), False)
        return [self._parsed(item) for item in _results(value.get("results"))]

    def _parsed(self, item: Any) -> Any:
        """Results are JSON text inside the JSON text; three codes have a meaning of their own."""
        if not isinstance(item, dict):
            return item
        item = dict(item)
        if isinstance(item.get("result"), str):
            with contextlib.suppress(ValueError):
                item["result"] = json.loads(item["result"])
        meaning = OLD_CODES.get(item.get("code", 0))
        if meaning is not None:
            item["code"] = meaning[0]
            item["message"] = item.get("message") or meaning[1]
        if item.get("result_file"):
            with open(item["result_file"], "rb") as file:
                item["body"] = file.read()
        return item


def _without_bodies(data: Any) -> Any:
    """Pictures as JSON can hold them: by the paths of their files."""
    if isinstance(data, list):
        return [_without_bodies(entry) for entry in data]
    return {name: value for name, value in data.items() if name != "body"}


OLD_CODES = {-1: (400, "out of batch size"), -2: (500, "forward failed"), -3: (400, "invalid image")}
"""The code and the message of today for each special code of generation 1."""
