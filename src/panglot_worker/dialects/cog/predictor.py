"""The predictor of a script: the class or function that cog.yaml names, constructed and set up."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import sys
from typing import Any, Callable, Dict, Optional

from panglot_worker.dialects.cog.files import Files
from panglot_worker.dialects.cog.kinds import BadValue, Kind
from panglot_worker.dialects.cog.signature import signature_of
from panglot_worker.errors import ScriptError, message_of
from panglot_worker.scripts.loading import import_script

METHODS = ("predict", "run")
USUAL = ("Runner", "Predictor")
WEIGHTS = "weights"
HIDDEN = "**********"
CONTAINERS = (list, dict)
NESTED = frozenset({"any", "dict"})
"""Kinds whose values may have lists and dicts in them."""
MADE = frozenset({"path", "file", "secret"})
"""Kinds of which the script gets something else than the value that was sent."""


class Predictor:
    """A loaded predictor, or a function that trains. Constructing it imports the script `file`, and takes the class or
    function `name` of it. Raises ScriptError, and what the script raises."""

    def __init__(self, file: str, name: str = "") -> None:
        # The package in `platform`, which is importable in a worker of this dialect alone.
        cog: Any = importlib.import_module("cog")
        # Scripts parse their arguments when they are imported, and there are none.
        sys.argv = sys.argv[:1]
        self.module = import_script(file)
        self.cog = cog
        self.entry, self.instance, self.function = self._chosen(file, name)
        plain = inspect.unwrap(self.function)
        names = {str: "str", int: "int", float: "float", bool: "bool", cog.Path: "path", cog.File: "file",
                 cog.Secret: "secret"}  # fmt: skip
        self.signature = signature_of(self.function, names, cog.Input)
        is_async_generator = inspect.isasyncgenfunction(plain)
        self.is_generator = inspect.isgeneratorfunction(plain) or is_async_generator
        self.is_async = inspect.iscoroutinefunction(plain) or is_async_generator
        self.streams = bool(getattr(plain, "__cog_streaming__", False))
        self.concurrency = int(getattr(plain, "__cog_concurrency__", 0))

    def _chosen(self, file: str, name: str) -> Any:
        """The name, the object and the function that make predictions. Raises ScriptError."""
        usual = next((name for name in USUAL if hasattr(self.module, name)), USUAL[-1])
        wanted = name or usual
        chosen = getattr(self.module, wanted, None)
        if inspect.isfunction(chosen):
            return wanted, None, chosen
        if not inspect.isclass(chosen):
            raise ScriptError("there is no class or function %s in it" % wanted, file,
                              fix="define it, or name another in cog.yaml")  # fmt: skip
        instance = chosen()
        own = [name for name in METHODS if callable(getattr(instance, name, None))]
        if len(own) != 1:
            problem = "must define either run() or predict(), not both" if own else "has no predict()"
            raise ScriptError("%s %s" % (wanted, problem), file, fix="def predict(self, text: str) -> str")
        return "%s.%s" % (wanted, own[0]), instance, getattr(instance, own[0])

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring of the method, the class or the script."""
        texts = (inspect.unwrap(self.function).__doc__, type(self.instance).__doc__, self.module.__doc__)
        text = next((text for text in texts if text and text != self.cog.BasePredictor.__doc__), "")
        return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())

    # Setting up

    def set_up(self) -> Any:
        """Call `setup`, with the weights where it takes them; what it returns may be awaited."""
        set_up = getattr(self.instance, "setup", None)
        if set_up is None:
            return None
        takes = [name for name in inspect.signature(set_up).parameters if name == WEIGHTS]
        is_base = getattr(type(self.instance), "setup", None) is self.cog.BasePredictor.setup
        return set_up(weights=self._weights(set_up)) if takes and not is_base else set_up()

    def _weights(self, set_up: Callable[..., Any]) -> Any:
        """COG_WEIGHTS, or `weights` in the package; by the hint a text, a path or an open file."""
        given: Optional[str] = os.environ.get("COG_WEIGHTS") or (WEIGHTS if os.path.exists(WEIGHTS) else None)
        if given is None:
            return None
        hint = str(inspect.signature(set_up).parameters[WEIGHTS].annotation)
        if "Path" in hint:
            return self.cog.Path(given)
        return open(given, "rb") if "File" in hint else given

    # Predictions

    def arguments(self, values: Dict[str, Any], files: Files) -> Dict[str, Any]:
        """The inputs as the script gets them. Raises BadValue, with the name of the input."""
        made = {}
        for parameter in self.signature.parameters:
            value = values[parameter.name]
            if value is parameter.default and isinstance(value, str) and parameter.kind.is_file:
                # A default of the script's own is a path of its package, not an address.
                made[parameter.name] = self.cog.Path(value)
                continue
            try:
                many = isinstance(value, list) and parameter.kind.many
                if many and parameter.kind.name in MADE:
                    made[parameter.name] = [self._made(each, parameter.kind, files) for each in value]
                elif isinstance(value, (list, dict)):
                    # A copy, since the script may change it: the answer repeats inputs, and defaults are used again.
                    made[parameter.name] = copied(value) if parameter.kind.name in NESTED else copy.copy(value)
                else:
                    made[parameter.name] = self._made(value, parameter.kind, files)
            except BadValue as error:
                error.args = (*error.args, parameter.name)
                raise
        return made

    def shown(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """The inputs as answers repeat them: secrets stay secret."""
        secrets = [parameter.name for parameter in self.signature.parameters if parameter.kind.name == "secret"]
        return {name: HIDDEN if name in secrets and value else value for name, value in values.items()}

    def _made(self, value: Any, kind: Kind, files: Files) -> Any:
        if not isinstance(value, str):
            return value
        if kind.name == "path":
            return files.path(value, self.cog.Path)
        if kind.name == "file":
            return files.file(value)
        return self.cog.Secret(value) if kind.name == "secret" else value

    def example(self) -> Optional[Dict[str, Any]]:
        """The inputs with a value that is known: their default, their first choice, or the least number."""
        shown: Dict[str, Any] = {}
        for parameter in self.signature.parameters:
            field = parameter.field
            if not parameter.is_required:
                continue
            if parameter.kind.is_file or parameter.kind.many:
                return None
            numbers = {"int": 1, "float": 1.0, "bool": True}
            usual = numbers.get(parameter.kind.name, "hello")
            shown[parameter.name] = field.choices[0] if field.choices else usual if field.ge is None else field.ge
        return shown

    # Health

    async def check_health(self) -> Any:
        """True, False, or the text of what the script's own check raised."""
        if not callable(getattr(self.instance, "healthcheck", None)):
            return True
        try:
            value = self.instance.healthcheck()
            return bool(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            return "Healthcheck failed: %s" % message_of(error)


def copied(value: Any) -> Any:
    """A value of JSON that shares no list or dict with another one."""
    if type(value) is list:
        return [copied(each) if type(each) in CONTAINERS else each for each in value]
    if type(value) is dict:
        return {name: copied(each) if type(each) in CONTAINERS else each for name, each in value.items()}
    return value
