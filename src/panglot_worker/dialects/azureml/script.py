"""The loaded script: its `run`, how `run` is called, and the schemas of its input and output."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError
from panglot_worker.scripts.loading import import_script

MODULE = "entry_module"
"""The name that the platform imports every script by."""
HEADERS = "request_headers"
"""A parameter of this name gets the request's headers."""
RAW_MODULE = "azureml_inference_server_http.api.aml_request"
OBJECT = {"type": "object", "example": {}}
ALL_VERSIONS = ("2.0", "3.0", "3.1")

PLAIN, SCHEMA, RAW = "plain", "schema", "raw"


class Script(NamedTuple):
    """How the platform calls a script."""

    module: ModuleType
    init: Callable[[], Any]
    run: Callable[..., Any]
    mode: str
    parameters: List[inspect.Parameter]
    """The parameters that take input: all but the headers."""
    takes_headers: bool
    schemas: Dict[str, Any]
    """For `/swagger.json`: the schemas `input` and `output`, and the `versions` of Swagger that can express them."""


def load(package: Package) -> Script:
    """Import the script. Raises ScriptError where the platform would refuse it, and whatever the script raises."""
    module = _imported(package.script)
    for name in ("init", "run"):
        if not callable(getattr(module, name, None)):
            problem = "User script at %s does not have a %s() function defined." % (package.script, name)
            raise ScriptError(problem, package.script, fix="define def %s" % SIGNATURES[name])
    run = module.run
    driven = getattr(module, "driver_module", None)
    if isinstance(driven, ModuleType) and callable(getattr(driven, "run", None)):
        # Scripts that Azure's designer and AutoML write hand run() on, but not its arguments by name.
        run = driven.run
    parameters = list(inspect.signature(run).parameters.values())
    inputs = [parameter for parameter in parameters if parameter.name != HEADERS]
    _check(run, parameters, inputs, package.script)
    raw, decorated = is_raw(), is_decorated(run)
    if raw and decorated:
        problem = "run() cannot be decorated with both @rawhttp and @input_schema"
        raise _error(run, package.script, problem, "take one of them away")
    mode = RAW if raw else SCHEMA if decorated else PLAIN
    return Script(module, module.init, run, mode, inputs, len(inputs) < len(parameters), schemas_of(run, decorated))


def _imported(file: str) -> ModuleType:
    """The script as a module. Raises ScriptError for what scikit-learn has removed, and whatever the script raises."""
    try:
        return import_script(file, MODULE)
    except ImportError as error:
        if not (error.name or "").startswith("sklearn.externals"):
            raise
        problem = "scikit-learn has no sklearn.externals.joblib since version 0.23"
        raise ScriptError(problem, file, fix="write `import joblib`, and pip install joblib") from error


SIGNATURES = {"init": "init(): it loads the model", "run": "run(raw_data): it answers one request"}


def _check(run: Any, parameters: List[inspect.Parameter], inputs: List[inspect.Parameter], file: str) -> None:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in kinds for parameter in parameters):
        problem = "run() cannot accept positional-only arguments, *args, or **kwargs."
        raise _error(run, file, problem, "name its parameters: def run(raw_data)")
    if not inputs:
        problem = "run() needs to accept an argument for input data."
        if parameters:
            problem = 'run() needs to accept an argument other than "request_headers".'
        raise _error(run, file, problem, "def run(raw_data)")


def _error(run: Any, file: str, problem: str, fix: str) -> ScriptError:
    code = getattr(inspect.unwrap(run), "__code__", None)
    return ScriptError(problem, getattr(code, "co_filename", file), getattr(code, "co_firstlineno", 0), fix)


def is_raw() -> bool:
    """Whether anything in this process has used `@rawhttp`."""
    module = sys.modules.get(RAW_MODULE)
    return bool(getattr(module, "_rawHttpRequested", False))


# inference_schema, which is there only where the script imports it


def _schema_util() -> Optional[ModuleType]:
    if "inference_schema" not in sys.modules:
        return None
    return importlib.import_module("inference_schema.schema_util")


def is_decorated(run: Callable[..., Any]) -> bool:
    util = _schema_util()
    return util is not None and bool(util.is_schema_decorated(run))


def schemas_of(run: Callable[..., Any], decorated: bool) -> Dict[str, Any]:
    util = _schema_util()
    if util is None or not decorated:
        return {"input": OBJECT, "output": OBJECT, "versions": list(ALL_VERSIONS)}
    versions = list(util.get_supported_versions(run))
    return {"input": util.get_input_schema(run), "output": util.get_output_schema(run), "versions": versions}


def converts(error: BaseException) -> bool:
    """Whether an exception of `run` is about input that inference_schema cannot convert: it came before the script."""
    frame = error.__traceback__
    converting = False
    while frame is not None:
        # From the outside in: the decorator converts the input before it calls `run`, which is in MODULE.
        module = str(frame.tb_frame.f_globals.get("__name__", ""))
        if module == MODULE:
            return False
        converting = converting or frame.tb_frame.f_code.co_name == "_deserialize_input_argument"
        frame = frame.tb_next
    return converting and not isinstance(error, (MemoryError, RecursionError))
