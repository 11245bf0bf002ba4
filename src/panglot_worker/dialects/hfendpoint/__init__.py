"""Handlers of Hugging Face Inference Endpoints: `EndpointHandler(path)`, called with a dict for every request."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, List, Tuple, Union, cast

from panglot_worker.bodies import streams
from panglot_worker.compat import devices
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.hfendpoint import answers, requests, script
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.line.description import Description
from panglot_worker.scripts.ending import finalise


class HfEndpoint(Dialect):
    """Serves one handler. It is called on the main thread, one request at a time, as on the platform."""

    status_blames_client = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.reader = requests.Reader(self.limits, str(package.options.get("task", "")))
        self.writer = answers.Writer(self.limits, self.nan, bool(package.settings.get("strict_results", True)))
        self.kind: Any = None
        self.handler: Any = None
        self._hinted: List[str] = []

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script and construct its handler with the package's folder. Raises ScriptError."""
        # Before the import: it changes the frameworks that the script imports.
        devices.prepare(os.environ.get("PANGLOT_DEVICE", self.package.settings.get("device", "")), self._say)
        progress("importing " + os.path.basename(self.package.script))
        self.kind = script.find(self.package)
        if self.package.does("inference"):
            progress("constructing " + self.kind.__name__)
            self.handler = script.construct(self.kind, self.package)
        waits = inspect.iscoroutinefunction(self.kind.__call__)
        return Stages(
            decode=self.reader.read,
            infer=self._awaited if waits else self.handler,
            encode=self.encode,
            decodes_ahead=True,
        )

    def describe(self) -> Description:
        kind = self.kind
        described = cast(Description, dict(self.package.options.get("api", {})))
        described["entry"] = kind.__name__ + ".__call__"
        described["summary"] = script.summary(kind)
        described["streams"] = inspect.isgeneratorfunction(kind.__call__)
        return described

    def _say(self, text: str) -> None:
        """Warn once per server: every worker would say the same, so the first says it."""
        if self.package.worker == 0:
            self.warn(text)

    def _awaited(self, data: Any) -> Any:
        """The result of a handler whose `__call__` is a coroutine."""
        return self.settled(self.handler(data))

    def result_function(self, request: Request) -> Any:
        return self.kind.__call__

    # A request

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """The content by its first bytes; text that is neither JSON, picture nor sound is the `inputs`."""
        kind = requests.guessed(content)
        if kind:
            return kind, content
        return requests.JSON, answers.compact({"inputs": content.decode("utf-8", "replace")})

    def encode(self, output: Any, request: Request) -> Answer:
        return self.writer.write(output, request.head.accept)

    def encode_part(self, output: Any, content_type: str) -> bytes:
        """A part of an answer in parts. The platform has none: it refuses generators."""
        return streams.written(self.writer.json(output)[0], content_type)

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """400 with the exception's own text, from whatever code it came; beyond a limit, the limit's own status."""
        if isinstance(error, ClientError) and error.status != 400:
            return Problem(error.status, error.code, error.message)
        message = error.reason if isinstance(error, EncodeError) else message_of(error)
        if stage != "decode":
            self._hint(devices.explain(error))
        return Answer(answers.JSON, answers.compact({"error": message}), 400)

    def _hint(self, text: str) -> None:
        """Warn once of what makes requests of this script fail, and how to mend it."""
        if text and text not in self._hinted:
            self._hinted.append(text)
            self.warn("%s: %s" % (text, devices.FIX))

    def close(self) -> None:
        finalise(self, "handler")


DIALECT = HfEndpoint
