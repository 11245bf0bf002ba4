"""The script's engine, built once: called step by step, or through the script's own driver."""

from __future__ import annotations

import copy
import os
from types import ModuleType
from typing import Any, Dict, Iterable, List, Optional, Sequence, Type

from panglot_worker.dialects.paddle.requests import Wanted


class Source:
    """An engine and the arguments it was built with. The inputs of a request go into them, as in a new run."""

    def __init__(self, module: ModuleType, kind: Type[Any], arguments: Any, options: Dict[str, Any]) -> None:
        self.arguments = arguments
        self.engine = kind(arguments)
        # After the constructor: its changes of the arguments stay.
        self._original = copy.copy(getattr(arguments, "__dict__", {}))
        self.left_something = False
        """Whether the last `prepare` changed what the engine holds."""

    def put(self, inputs: Dict[str, str]) -> None:
        """Every request begins with the arguments as they were given, and its own inputs."""
        state = getattr(self.arguments, "__dict__", None)
        if state is not None:
            # In place: the engine has stored this very object, and scripts write into it.
            state.clear()
            state.update(self._original)
        for name, value in inputs.items():
            setattr(self.arguments, name, value)

    def samples(self, wanted: List[Wanted]) -> Optional[Dict[str, str]]:
        """The script's own default inputs, when all of them are there."""
        samples = {}
        for field in wanted:
            value = self._original.get(field.name)
            if not isinstance(value, str) or not value or (field.kind != "text" and not _is_there(value, field.kind)):
                return None
            samples[field.name] = value
        return samples

    def given(self, names: Iterable[str]) -> Dict[str, str]:
        """The inputs of these names as the script's command line has them."""
        return {name: str(self._original[name]) for name in names if self._original.get(name) is not None}

    def prepare(self, inputs: Dict[str, str]) -> Any:
        raise NotImplementedError

    def infer(self, value: Any) -> Any:
        raise NotImplementedError

    def postprocess(self, output: Any) -> Any:
        return output

    @property
    def functions(self) -> Sequence[Any]:
        """The script's functions that may make the result, the last first."""
        raise NotImplementedError


def _is_there(path: str, kind: str) -> bool:
    return os.path.isdir(path) if kind == "folder" else os.path.isfile(path)


class Stepped(Source):
    """preprocess, run and postprocess, each called by itself."""

    def __init__(self, module: ModuleType, kind: Type[Any], arguments: Any, options: Dict[str, Any]) -> None:
        super().__init__(module, kind, arguments, options)
        self.whole = bool(options.get("whole"))

    def prepare(self, inputs: Dict[str, str]) -> Any:
        """Run preprocess on the inputs, and note in `left_something` whether it changed an attribute of the engine."""
        self.put(inputs)
        before = dict(getattr(self.engine, "__dict__", {}))
        value = self.engine.preprocess(self.arguments if self.whole else next(iter(inputs.values())))
        holds = getattr(self.engine, "__dict__", {})
        # `self` stands for an attribute that was not there: the engine never holds this object.
        self.left_something = len(holds) != len(before) or any(
            holds[name] is not before.get(name, self) for name in holds
        )
        return value

    def infer(self, value: Any) -> Any:
        return self.engine.run(value)

    def postprocess(self, output: Any) -> Any:
        return self.engine.postprocess(output)

    @property
    def functions(self) -> Sequence[Any]:
        return self.engine.postprocess, self.engine.run


class Driven(Source):
    """The driver as a whole. Whenever it builds an engine it gets the one that is there."""

    def __init__(self, module: ModuleType, kind: Type[Any], arguments: Any, options: Dict[str, Any]) -> None:
        super().__init__(module, kind, arguments, options)
        self.driver = getattr(module, options["driver"])
        self.takes_arguments = bool(options.get("driver_takes"))
        build_once(kind, self.engine)
        parses = options.get("get_arguments")
        # Such a driver parses the command line for each request: it gets the arguments with the request's inputs.
        if parses and not self.takes_arguments:
            setattr(module, parses, lambda *given, **named: self.arguments)

    @property
    def functions(self) -> Sequence[Any]:
        return (self.driver,)

    def infer(self, inputs: Dict[str, str]) -> Any:
        """Call the script's driver on one request's inputs. Raises DriverEnded where it ends the process."""
        self.put(inputs)
        try:
            return self.driver(self.arguments) if self.takes_arguments else self.driver()
        except SystemExit as end:
            raise DriverEnded(
                "the driver ended the process with exit code %s; the published auto_log does so at the end of its "
                "report: serve without --benchmark" % end.code
            ) from end


class DriverEnded(Exception):
    """The driver called sys.exit()."""


def build_once(kind: Type[Any], engine: Any) -> None:
    """Make every construction of the class return this engine. The class itself stays, for super() and isinstance."""

    def new(cls: Type[Any], *given: Any, **named: Any) -> Any:
        return engine if cls is kind else object.__new__(cls)

    first = kind.__init__

    def init(self: Any, *given: Any, **named: Any) -> None:
        # Python runs `__init__` on every result of `__new__`, also on the engine that is complete.
        if self is not engine:
            first(self, *given, **named)

    # The class is changed, not replaced: scripts have imported it by name.
    kind.__new__ = new  # type: ignore[assignment]
    kind.__init__ = init
