"""Handlers of Hugging Face Inference Endpoints: `EndpointHandler(path)`, called with a dict for every request."""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from panglot_worker.bodies import codec
from panglot_worker.compat import devices
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.hfendpoint import answers, requests, script
from panglot_worker.errors import ClientError, EncodeError, message_of
from panglot_worker.scripts.ending import finalise


class HfEndpoint(Dialect):
    """Serves one handler. It is called on the main thread, one request at a time, as on the platform."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        settings = package.settings
        self.limits = codec.Limits(**settings.get("limits", {}))
        self.reader = requests.Reader(self.limits, str(package.options.get("task", "")))
        self.writer = answers.Writer(
            self.limits, settings.get("nan", "null"), bool(settings.get("strict_results", True))
        )
        self.handler: Any = None
        self._event_loop: Optional[asyncio.AbstractEventLoop] = None
        self._hinted: List[str] = []

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script and construct its handler with the package's folder. Raises ScriptError."""
        devices.prepare(os.environ.get("PANGLOT_DEVICE", self.package.settings.get("device", "")), self._say)
        progress("importing " + os.path.basename(self.package.script))
        kind = script.find(self.package)
        progress("constructing " + kind.__name__)
        self.handler = script.construct(kind, self.package)
        waits = inspect.iscoroutinefunction(type(self.handler).__call__)
        return Stages(
            decode=self.reader.read,
            infer=self._awaited if waits else self.handler,
            encode=self.encode,
            decodes_ahead=True,
        )

    def describe(self) -> Dict[str, Any]:
        kind = type(self.handler)
        return {
            **self.package.options.get("api", {}),
            "entry": kind.__name__ + ".__call__",
            "summary": script.summary(kind),
            "streams": inspect.isgeneratorfunction(kind.__call__),
        }

    def _say(self, text: str) -> None:
        """Warn once per server: every worker would say the same, so the first says it."""
        if self.package.worker == 0:
            self.warn(text)

    def _awaited(self, data: Any) -> Any:
        """The result of a handler whose `__call__` is a coroutine, on the one event loop of this worker."""
        if self._event_loop is None:
            self._event_loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._event_loop)
        return self._event_loop.run_until_complete(self.handler(data))

    # A request

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """The content by its first bytes; text that is neither JSON, picture nor sound is the `inputs`."""
        kind = requests.guessed(content)
        if kind:
            return kind, content
        return requests.JSON, answers.compact({"inputs": content.decode("utf-8", "replace")})

    def encode(self, output: Any, request: Request) -> Answer:
        return self.writer.write(output, request.head.accept)

    def stream_type(self, request: Request) -> str:
        """An extension: the platform refuses generators."""
        accept = request.head.accept
        return answers.JSON_LINES if b"ndjson" in accept or b"jsonl" in accept else answers.EVENT_STREAM

    def encode_part(self, output: Any, content_type: str) -> bytes:
        body = self.writer.json(output)[0]
        return body + b"\n" if content_type == answers.JSON_LINES else b"data: " + body + b"\n\n"

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """400 with the exception's own text, whoever raised it; beyond a limit, the limit's own status."""
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

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """A script's own exception is answered 400, and is still the script's."""
        return isinstance(error, ClientError)

    def close(self) -> None:
        finalise(self, "handler")


DIALECT = HfEndpoint
