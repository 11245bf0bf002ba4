"""Huawei ModelArts: one service object, `inference(data)` for every POST to `/`."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, Callable, List, Optional, Tuple, Union

from panglot_worker.bodies.magic import media_type
from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.compat import devices, keras, tensorflow1
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages, warned
from panglot_worker.dialects.modelarts import answers, requests, service, signature
from panglot_worker.errors import ClientError, described
from panglot_worker.life.threads import ThreadWatch
from panglot_worker.line.description import Description
from panglot_worker.scripts.ending import finalise
from panglot_worker.scripts.loading import script_traceback

PATIENCE = 0.9
"""The share of the load deadline after which a thread is given up, so that the reason is logged before the deadline."""
LOG_EVERY = 1.0
"""Seconds between requests whose times are logged; all of them are in Server-Timing and in /metrics."""


class Modelarts(Dialect):
    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        settings = package.settings
        self.dev = bool(settings.get("dev"))
        self.service: Any = None
        self.staged = False
        self.raw = False
        self.input_names: Optional[List[str]] = None
        self._marks: List[float] = []
        """When each step of the call in progress began."""
        self._logged = -LOG_EVERY
        self._hinted: List[str] = []
        self._log_times: Callable[..., None] = lambda *marks: None

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, construct its service, and wait for the threads that its constructor started.

        Raises what the script raises, ScriptError when it has no service, and the exception that ended one of its
        threads.
        """
        began = time.monotonic()
        settings, folder = self.package.settings, self.package.folder
        # All three before the import: they change the frameworks that the script imports.
        devices.prepare(os.environ.get("PANGLOT_DEVICE", settings.get("device", "")), self._say)
        tensorflow1.prepare(folder, self._say)
        legacy = keras.Legacy(folder)
        with ThreadWatch() as threads, legacy.explaining(self.package.script):
            progress("importing " + os.path.basename(self.package.script))
            kind = service.find(self.package)
            progress("constructing " + kind.__name__)
            self.service = service.construct(kind, self.package)
            if settings.get("await_threads", True):
                patience = PATIENCE * float(settings.get("load_timeout", 300.0))
                threads.wait(patience - (time.monotonic() - began), progress)
        if self.package.does("inference"):
            progress("loading the model")
            service.default_loader(self.service)()
        self._arrange(kind)
        staged = self.staged
        return Stages(
            decode=self.decode,
            preprocess=self.preprocess if staged else None,
            infer=self.infer if staged else self.infer_whole,
            postprocess=self.postprocess if staged else None,
            encode=self.encode,
        )

    def describe(self) -> Description:
        kind = type(self.service)
        options = self.package.options
        api: Description = options.get("api", {})
        if not ("example" in api or "request_schema" in api) and self.package.does("inference"):
            api = {**api, **signature.described(self.service, options.get("picture_type", ""))}
        return {**api, "entry": kind.__name__ + ".inference", "summary": service.summary(kind)}

    def _say(self, text: str) -> None:
        """Warn once per server: every worker would say the same, so the first says it."""
        if self.package.worker == 0:
            self.warn(text)

    def result_function(self, request: Request) -> Any:
        return self.of_script(
            *(getattr(self.service, name, None) for name in ("_postprocess", "_inference", "inference"))
        )

    def _arrange(self, kind: Any) -> None:
        settings = self.package.settings
        self.raw = service.takes_raw(kind)
        self.staged = not service.has_own(self.service, "inference")
        if self.staged and not self.raw:
            self._log_times = importlib.import_module("model_service.model_service").log_times
        if service.derives(kind, "mms.model_service.mxnet_model_service", "MXNetBaseService"):
            path = self.package.options["model_path"]
            self.input_names = service.input_names(service.manifest(path, ""), path)
        self.encoder = StandardJson(self.limits, self.nan, bool(settings.get("strict_results")), ascii=self.raw)
        without_model = getattr(self.service, "model", self) is None and not service.has_own(self.service, "_inference")
        if self.staged and without_model and self.package.does("inference"):
            self._say("self.model is None, and there is no _inference of the script's own: requests will fail")

    # A request

    def decode(self, request: Request) -> Any:
        if self.raw:
            data, value = requests.raw(request.body, self.limits)
            request.context = {"meta": value["meta"]} if isinstance(value, dict) and "meta" in value else {}
            return data
        data = requests.parse(request.head, request.body, self.limits)
        return data if self.input_names is None else requests.inputs(data, self.input_names)

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """JSON as it is; anything else as an upload, called like the tensor."""
        if self.raw or media_type(content) == requests.JSON:
            return requests.JSON, content
        return requests.upload(name, content)

    def preprocess(self, value: Any) -> Any:
        self._marks = [time.perf_counter()]
        return self.service._preprocess(value)

    def infer(self, value: Any) -> Any:
        # Without the first step in this process, there are never three marks, and no times are logged.
        if not self.package.does("preprocess"):
            self._marks = []
        self._marks.append(time.perf_counter())
        return self.service._inference(value)

    def infer_whole(self, value: Any) -> Any:
        """All three steps, by the script's own order of them."""
        return self.service.inference(value)

    def postprocess(self, output: Any) -> Any:
        """Run the script's step; then, at most once in LOG_EVERY seconds, log the times of all three steps."""
        if not self.package.does("inference"):
            self._marks = []
        self._marks.append(time.perf_counter())
        result = self.service._postprocess(output)
        now = time.perf_counter()
        if now - self._logged >= LOG_EVERY and len(self._marks) == 3:
            self._logged = now
            self._log_times(*self._marks, now)
        return result

    def encode(self, output: Any, request: Request) -> Answer:
        if self.raw:
            output = {**request.context, "data": {"resp_data": output}}
        body, warning = self.encoder.encode(output)
        return Answer(answers.JSON, body, 200, warned(warning))

    # Failures

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """The platform's error body; with `--dev`, the reason in a header too."""
        answer = self._refusal(error) if stage == "decode" else None
        if answer is None:
            answer = self._failed(error)
            self._hint(devices.explain(error))
        if isinstance(answer, Answer) and self.dev:
            answer = answers.with_reason(answer, described(error))
        return answer

    def _hint(self, text: str) -> None:
        """Warn once of what makes requests of this script fail, and how to mend it."""
        if text and text not in self._hinted:
            self._hinted.append(text)
            self.warn("%s: %s" % (text, devices.FIX))

    def _refusal(self, error: BaseException) -> Union[Answer, Problem, None]:
        """The answer to a request that cannot be read; None when the request is not to blame."""
        if isinstance(error, requests.NoPlaceForQuery):
            return answers.page(
                500, "The server encountered an internal error and was unable to complete your request."
            )
        if isinstance(error, requests.Unusable):
            return answers.parsed_error("MR.0101", 400)
        if not isinstance(error, ClientError):
            return None
        if isinstance(error, requests.NotJson) and self.raw:
            return answers.raw_error("PY.0101", 500, described(error))
        if isinstance(error, requests.NotJson):
            return answers.page(400, "Failed to decode JSON object: " + error.message)
        return Problem(error.status, "bad_request", error.message)

    def _failed(self, error: BaseException) -> Answer:
        status = 400 if isinstance(error, (KeyError, TypeError)) else 500
        if not self.raw:
            return answers.parsed_error("MR.0105", status)
        info = script_traceback(error) if self.dev else described(error)
        return answers.raw_error("PY.0105", status, info)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether the request is to blame. The status does not tell: a script's KeyError is answered with 400 too."""
        return isinstance(error, ClientError)

    def close(self) -> None:
        """Run the service's `__del__`. What it raises is shown, and harms nothing."""
        try:
            finalise(self, "service")
        except BaseException as error:
            print(script_traceback(error), file=sys.stderr, flush=True)


DIALECT = Modelarts
