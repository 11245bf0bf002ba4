"""The predictor of a script: the class or function that cog.yaml names, constructed and set up."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any, Callable, Dict, FrozenSet, Optional

from panglot_worker.dialects.cog.files import Files
from panglot_worker.dialects.cog.kinds import Kind
from panglot_worker.dialects.cog.signature import signature_of
from panglot_worker.dialects.cog.values import BadValue, Sent
from panglot_worker.errors import ScriptError, message_of
from panglot_worker.scripts.loading import import_script

METHODS = ("predict", "run")
USUAL = ("Runner", "Predictor")
WEIGHTS = "weights"
HIDDEN = "**********"
DEEP: FrozenSet[type] = frozenset({list, dict, Sent})
"""Types of values that are not copied as they are."""


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

        def make(text: Sent) -> Any:
            return self._made(text, files)

        arguments = {}
        for name, value in values.items():
            try:
                # A copy, since the script may change it: the answer repeats inputs, and defaults are used again.
                arguments[name] = copied(value, make)
            except BadValue as error:
                error.place = (name,)
                raise
        return arguments

    def shown(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """The inputs as answers repeat them: secrets stay secret."""
        secrets = [parameter.name for parameter in self.signature.parameters if parameter.kind.name == "secret"]
        return {name: HIDDEN if name in secrets and value else copied(value, hidden) for name, value in values.items()}

    def _made(self, text: Sent, files: Files) -> Any:
        if text.kind == "path":
            return files.path(str(text), self.cog.Path)
        if text.kind == "file":
            return files.file(str(text))
        return self.cog.Secret(str(text)) if text.kind == "secret" else self.cog.Path(str(text))

    def example(self) -> Optional[Dict[str, Any]]:
        """The inputs with a value that is known: their default, their first choice, or the least number."""
        shown: Dict[str, Any] = {}
        for parameter in self.signature.parameters:
            field = parameter.field
            if not parameter.is_required:
                continue
            kind = usual_kind(parameter.kind)
            if kind is None:
                return None
            numbers = {"int": 1, "float": 1.0, "bool": True}
            usual = numbers.get(kind.name, "hello")
            shown[parameter.name] = field.choices[0] if field.choices else usual if field.ge is None else field.ge
        return shown

    # Health

    @property
    def has_healthcheck(self) -> bool:
        """Whether there is a check of its own, which may come from a class of another module."""
        return callable(getattr(self.instance, "healthcheck", None))

    async def check_health(self) -> Any:
        """True, False, or the text of what the script's own check raised. True where there is none."""
        if not self.has_healthcheck:
            return True
        try:
            value = self.instance.healthcheck()
            return bool(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            return "Healthcheck failed: %s" % message_of(error)


def usual_kind(kind: Kind) -> Optional[Kind]:
    """The kind of which an example has a value, of a union the first; None for lists and files."""
    possible = [each for each in kind.inner or (kind,) if not each.is_file and not each.is_list]
    return possible[0] if possible and not kind.is_list else None


def copied(value: Any, make: Callable[[Sent], Any]) -> Any:
    """A value of JSON that shares no list or dict with another one; `make` gives what stands for a text in it that
    was sent for a file or a secret."""
    if type(value) is list:
        # Lists may be long.
        return value.copy() if DEEP.isdisjoint(map(type, value)) else [copied(each, make) for each in value]
    if type(value) is dict:
        return {name: copied(each, make) for name, each in value.items()}
    return make(value) if type(value) is Sent else value


def hidden(text: Sent) -> str:
    """What answers have for a text that was sent."""
    return HIDDEN if text.kind == "secret" and text else str(text)
