"""Processors of Alibaba Cloud PAI-EAS: scripts that make a `allspark.BaseProcessor` and call its `run()`."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from typing import Any, Callable, List, Union

from panglot_worker.compat import devices
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.paieas import answers
from panglot_worker.errors import BAD_RESULT, SCRIPT_ERROR, ClientError, ScriptError
from panglot_worker.line.description import Description
from panglot_worker.scripts import as_main

EXAMPLE = "hello"


class PaiEas(Dialect):
    """Serves one processor. Its `process` is called on the main thread, one request at a time."""

    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.processor: Any = None
        self._hinted: List[str] = []

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Run the script as `__main__` until it calls `run()`, then its `initialize()`. Raises ScriptError."""
        devices.prepare(os.environ.get("PANGLOT_DEVICE", self.package.settings.get("device", "")), self._say)
        platform = answers.platform()
        platform.model_path = str(self.package.options.get("model_path") or self.package.folder)
        progress("running " + os.path.basename(self.package.script))
        self.processor = as_main.run(self.package.script, "run() of a processor").handed
        process = getattr(self.processor, "process", None)
        if not callable(process):
            raise ScriptError(
                "what it runs, a %s, has no process" % type(self.processor).__name__,
                self.package.script,
                fix="def process(self, data), which returns (bytes, 200)",
            )
        self.workers = answers.processes(self.processor)
        if self.package.does("inference"):
            progress("running initialize()")
            self.settled(self.processor.initialize())
        waits = inspect.iscoroutinefunction(process)
        return Stages(decode=self.decode, infer=self._awaited if waits else process, encode=self.encode)

    def describe(self) -> Description:
        """Bytes in and bytes out: a processor says no more about itself than its docstring."""
        kind = type(self.processor)
        text = kind.__doc__ if kind.__module__ == "__main__" else ""
        text = text or getattr(sys.modules.get("__main__"), "__doc__", "") or ""
        return {
            "entry": kind.__name__ + ".process",
            "summary": " ".join(inspect.cleandoc(text).split("\n\n")[0].split()),
            "request_schema": {"type": "string", "format": "binary"},
            "request_types": ["application/octet-stream"],
            "response_schema": {},
            "any_status": True,
        }

    def _say(self, text: str) -> None:
        """Warn once per server: every worker would say the same, so the first says it."""
        if self.package.worker == 0:
            self.warn(text)

    def _awaited(self, data: Any) -> Any:
        return self.settled(self.processor.process(data))

    def result_function(self, request: Request) -> Any:
        return self.processor.process

    # A request

    def decode(self, request: Request) -> bytes:
        """The body as bytes. Raises ClientError where its digest is not the one of the header Content-MD5."""
        body = bytes(request.body)
        said = answers.header(request.head.headers, b"content-md5")
        # The platform's clients choose MD5; it is compared, and nothing is trusted because of it alone.
        if said and hashlib.md5(body).hexdigest().encode() != said.lower():  # noqa: S324
            raise ClientError("the body is not the one of the header Content-MD5")
        return body

    def encode(self, output: Any, request: Request) -> Answer:
        return answers.written(output, self.limits, self.nan)

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        if isinstance(error, ClientError):
            return Problem(error.status, error.code, error.message)
        self._hint(devices.explain(error))
        return Problem(500, "script_error", BAD_RESULT if stage == "encode" else SCRIPT_ERROR)

    def _hint(self, text: str) -> None:
        """Warn once of what makes requests of this script fail, and how to mend it."""
        if text and text not in self._hinted:
            self._hinted.append(text)
            self.warn("%s: %s" % (text, devices.FIX))


DIALECT = PaiEas
