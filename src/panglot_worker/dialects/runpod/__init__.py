"""Workers of RunPod's serverless platform: scripts that hand a handler to `runpod.serverless.start`."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Union

from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.runpod import answers, platform_package
from panglot_worker.dialects.runpod.handler import Handler, Work
from panglot_worker.dialects.runpod.jobs import REALTIME, job_of
from panglot_worker.errors import ClientError, ScriptError
from panglot_worker.line.description import Description
from panglot_worker.scripts import as_main

FORM = 'runpod.serverless.start({"handler": handler})'
CONCURRENT = "panglot_worker.items.concurrent:serve"


class RunPod(Dialect):
    """Serves one handler: a job at a time on the main thread, or several where it is awaited and says how many."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.shows_traceback = bool(package.settings.get("dev"))
        self.config: Dict[str, Any] = {}
        self.handler: Handler
        self._running: Dict[str, Request] = {}
        """The requests of the jobs that run, by the id that the handler knows."""

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Run the script as `__main__` until it starts its worker, then its fitness checks. Raises ScriptError."""
        platform_package.prepare(self._progress_update, self.package.settings)
        progress("running " + os.path.basename(self.package.script))
        self.config = self._checked(as_main.run(self.package.script, FORM).handed)
        self.handler = Handler(self.config["handler"], self._finished)
        for check in platform_package.fitness_checks():
            progress("running the fitness check %s" % getattr(check, "__name__", check))
            self.settled(check())
        if self.handler.is_async:
            self.server = CONCURRENT
            self.slots = self._concurrency()
            return Stages(decode=self.decode, infer=self._infer_awaited, encode=self.encode)
        return Stages(decode=self.decode, infer=self._infer, encode=self.encode)

    def _checked(self, config: Any) -> Dict[str, Any]:
        """What the script handed over, with the arguments that the platform adds. Raises ScriptError."""
        handler = config.get("handler") if isinstance(config, dict) else None
        if not callable(handler):
            kind = "nothing" if handler is None else type(handler).__name__
            raise ScriptError("the handler of start() is %s, not a function" % kind, self.package.script, fix=FORM)
        whole: Dict[str, Any] = config
        whole.setdefault("rp_args", platform_package.arguments())
        return whole

    def _concurrency(self) -> int:
        """How many jobs the script wants to run at once, as its own function says from the number until now."""
        modifier = self.config.get("concurrency_modifier")
        if not callable(modifier):
            return 1
        wanted = modifier(self.slots)
        if type(wanted) is not int or wanted < 1:
            self.warn("concurrency_modifier returned %r; it must be a whole number from 1" % (wanted,))
            return self.slots
        return wanted

    def describe(self) -> Description:
        """The platform's form of a request, with the package's own file for tests as the example."""
        function = self.config["handler"]
        return {
            "entry": getattr(function, "__name__", type(function).__name__),
            "summary": self.handler.summary,
            "request_schema": {"type": "object", "properties": {"input": {}}, "required": ["input"]},
            "request_types": [answers.JSON],
            "example": self.package.options.get("example"),
            "streams": self.handler.is_generator,
        }

    def result_function(self, request: Request) -> Any:
        return self.config["handler"]

    # A job

    def decode(self, request: Request) -> Work:
        """The job that the handler is given. Raises ClientError."""
        job = job_of(request, self.limits)
        return Work(job, request, collects=not request.head.job)

    def _infer(self, work: Work) -> Any:
        """The result of a handler that runs on the main thread; for a generator, its yields."""
        self._begin(work)
        if self.handler.is_generator and not work.collects:
            return self.handler.yields(work)
        return self.handler.run(work, self.settled)

    def _infer_awaited(self, work: Work) -> Any:
        """The same on the event loop, beside other jobs."""
        self.change_slots(self._concurrency())
        self._begin(work)
        if self.handler.is_generator and not work.collects:
            return self.handler.awaited_yields(work)
        return self.handler.run_awaited(work)

    def _begin(self, work: Work) -> None:
        # For `failure`, which words the errors of generators in another way.
        work.request.context = self.handler.is_generator
        self._running[work.job["id"]] = work.request

    def _finished(self, work: Work, wants_refresh: bool) -> None:
        """What follows every job, however it ended."""
        self._running.pop(work.job["id"], None)
        platform_package.clear_debugger()
        if wants_refresh or self.config.get("refresh_worker"):
            self.replace_worker("the script wants a fresh worker after this job")

    def _progress_update(self, job: Any, progress: Any) -> None:
        """What `runpod.serverless.progress_update` does here; clients see it as the output of a job in progress."""
        request = self._running.get(job.get("id", "")) if isinstance(job, dict) else None
        if request is not None:
            self.report_progress(request, None, progress)

    # Answers

    def encode(self, output: Dict[str, Any], request: Request) -> Answer:
        """The outcome of a job. A failed one has status 500 on the way to the front, which words the answer."""
        failed = bool(output.get("error"))
        if request.head.route == REALTIME:
            return self.json_answer(output)
        # The platform's servers drop what a failed job has besides its error.
        shown = {"error": output["error"]} if failed else output
        return self._stored(shown, request, failed)

    def _stored(self, shown: Dict[str, Any], request: Request, failed: bool) -> Answer:
        if not request.head.job:
            shown = {"id": answers.shown_id(request), "status": "FAILED" if failed else "COMPLETED", **shown}
        return self.json_answer(shown, 500 if failed else 200)

    def stream_type(self, request: Request) -> str:
        return answers.JSON

    def encode_part(self, output: Any, content_type: str) -> bytes:
        """A yield, as `/stream` shows it. The front relies on the first bytes of it, `{"output":`."""
        return answers.part(self.json_answer(output).body)

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """A refused body as FastAPI words it; everything else is a failed job, with the platform's text."""
        if isinstance(error, ClientError):
            return answers.refusal(error) or Problem(error.status, error.code, error.message)
        if isinstance(error, answers.YieldedError):
            return self._stored({"error": str(error)}, request, failed=True)
        text = answers.failure_text(error, bool(request.context), self.shows_traceback)
        if request.head.route == REALTIME:
            return self.json_answer({"error": text})
        return self._stored({"error": text}, request, failed=True)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether the log can leave a failure out: a generator that yields an error does so on purpose."""
        return isinstance(error, answers.YieldedError) or super().blames_client(error, answer)


DIALECT = RunPod
