"""Scripts of the AVA evals convention: `create_net` once, then `net_inference(model, reqs)` for lists of requests.

The names that scripts import are in `platform/always/evals`; the rest of this folder drives them.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from panglot_worker.bodies.magic import media_type
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.evals import answers, requests, script, uris
from panglot_worker.dialects.evals.downloads import Downloads, Limits
from panglot_worker.dialects.evals.failures import FAILED, Failed, WrongShape
from panglot_worker.dialects.evals.files import Workplace
from panglot_worker.dialects.evals.monitoring import Measured
from panglot_worker.dialects.evals.pictures import PictureFiles
from panglot_worker.dialects.evals.requests import BATCH, GROUP, SINGLE, Task
from panglot_worker.errors import ClientError, message_of
from panglot_worker.items import splitting
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.net.fetched import Fetching
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import script_traceback


class Outcome(NamedTuple):
    """The outcome of a task: results, or the exception that it failed of."""

    kind: str
    rets: Sequence[Any] = ()
    error: Optional[BaseException] = None


class Evals(Dialect):
    streams = False
    nan_by_default = "error"

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        settings, options = package.settings, package.options
        self.batch_size = int(options.get("batch_size") or 1)
        self.split_batch = bool(options.get("split_batch", True))
        self.strict_codes = bool(options.get("platform_codes"))
        self.rerun = bool(settings.get("rerun", True))
        root, most = str(options.get("uri_root", "")), int(options.get("max_file", 64 << 20))
        self.sources = uris.Sources(root, most, bool(settings.get("sent")))
        self.encoder = answers.Encoder(self.limits, self.nan, bool(settings.get("strict_results", True)))
        self.script: script.Script
        self.files: Optional[PictureFiles] = None
        """For scripts that open `uri`: the folder of their pictures."""
        self._codes: Dict[int, int] = {}
        self._open = 0
        """Items of the last call that are not answered yet."""
        self.max_batch = self.batch_size

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, give it its files, and create its net. Raises ScriptError, and what the script raises."""
        package, options = self.package, self.package.options
        os.chdir(os.path.join(package.run_folder, "serving"))
        progress("importing " + os.path.basename(package.script))
        self.script = script.load(package)
        if self.script.needs_files or options.get("uri_files", True):
            self.files = PictureFiles(os.path.join(package.run_folder, "pictures"))
        progress("copying the model's files")
        workplace = Workplace(package.run_folder, options, self._downloads(progress))
        configs = {
            "app": str(options.get("app", "")),
            "workspace": workplace.workspace(),
            "batch_size": self.batch_size,
            "use_device": str(options.get("use_device") or self._device()),
            "model_files": workplace.model_files(),
            "custom_files": workplace.custom_files(),
            "custom_params": dict(options.get("custom_params") or {}),
            "model_params": dict(options.get("model_params") or {}),
        }
        if self.script.needs_files:
            configs["image_width"] = options.get("image_width", 0)
        progress("running create_net" if not self.script.needs_files else "running net_init")
        self.script.create(configs)
        self.measured = Measured(importlib.import_module("evals.utils").REGISTRY)
        return Stages(
            decode=self.decode,
            preprocess=self.preprocess if options.get("net_preprocess") else None,
            infer=self.infer,
            infer_batch=self.infer_batch if self.batch_size > 1 else None,
            encode=self.encode,
            # `decode` shares no state with a call of the script: `infer` writes the pictures to files.
            decodes_ahead=True,
        )

    def _downloads(self, progress: Callable[[str], None]) -> Downloads:
        options, settings = self.package.options, self.package.settings
        limits = Limits(int(options["model_file_bytes"]), float(options["silence"]), settings.get("url_allow", ()))
        return Downloads(os.path.join(os.path.dirname(self.package.run_folder), "fetched"), options, limits, progress)

    def describe(self) -> Description:
        api: Description = self.package.options.get("api", {})
        return {**api, "entry": "net_inference", "summary": (self.script.module.__doc__ or "").strip()}

    def _device(self) -> str:
        return "GPU" if str(self.package.settings.get("device", "")).startswith("cuda") else "CPU"

    def result_function(self, request: Request) -> Any:
        return self.script.infer

    # A request

    def decode(self, request: Request) -> Task:
        """The task in a body, its pictures loaded. Raises Failed, and Fetching when the front must fetch some first."""
        head = request.head
        body, fetched = request.body, None
        if head.fetched:
            body, fetched = uris.split(head.fetched, memoryview(request.body))
        task = requests.parse(head.route.decode("ascii"), head.content_type.decode("latin-1"), body, self.limits)
        requests.check_size(task, self.batch_size)
        self.sources.load(list(requests.sources(task)), fetched)
        return task if self.files is None else self.files.stored(task)

    def preprocess(self, value: Task) -> Task:
        if self.files is None:
            return value._replace(reqs=[self.script.preprocess(req) for req in value.reqs])
        with self.files.written([value]) as (task,):
            return self.files.named(task._replace(reqs=[self.script.preprocess(req) for req in task.reqs]))

    def infer(self, value: Task) -> Outcome:
        return self.infer_batch([value])[0]

    def infer_batch(self, values: List[Task]) -> List[Outcome]:
        """Single requests share calls of at most `batch_size`; groups and lists have calls of their own."""
        if self.files is None:
            return self._infer_all(values)
        with self.files.written(values) as tasks:
            return self._infer_all(tasks)

    def _infer_all(self, values: List[Task]) -> List[Outcome]:
        outcomes: Dict[int, Outcome] = {}
        running = list(current.running)
        singles = [number for number, task in enumerate(values) if task.kind == SINGLE]
        for start in range(0, len(singles), self.batch_size):
            chosen = singles[start : start + self.batch_size]
            outcomes.update(zip(chosen, self._together([(running[number], values[number]) for number in chosen])))
        for number, task in enumerate(values):
            if task.kind != SINGLE:
                outcomes[number] = self._attempt(task)
        self._tell_measured()
        # Where another pool encodes, no last answer comes here: each count is sent at once.
        self._open = len(values) if self.package.does("encode") else 0
        # A single item fails here, in the stage that failed. In a batch, `encode` raises each failure for its item.
        if len(values) == 1:
            error = outcomes[0].error
            if error is not None:
                raise error
        return [outcomes[number] for number in range(len(values))]

    def _text(self, error: BaseException) -> str:
        """The error text for clients."""
        text = message_of(error) or type(error).__name__
        return text if self.files is None else self.files.hidden(text)

    def _together(self, items: List[Tuple[Request, Task]]) -> List[Outcome]:
        """Single requests in one call. If that fails as a whole, each is run alone, to find out whose fault it was."""
        tasks = [task for _, task in items]
        if len(tasks) == 1:
            return [self._attempt(tasks[0])]
        try:
            rets = self._call([task.reqs[0] for task in tasks])
            if len(rets) != len(tasks):
                raise WrongShape("net_inference got %d requests and returned %d results" % (len(tasks), len(rets)))
        except BaseException as error:
            # SystemExit, or an interrupted call: nothing runs again, and the runner decides about this process.
            if not self.rerun or not isinstance(error, Exception):
                return [Outcome(SINGLE, error=error) for _ in tasks]
            alone = splitting.one_by_one(self._run, items, error, self.port, _traceback_of_script)
            return [_outcome(task, outcome) for task, outcome in zip(tasks, list(alone))]
        return [Outcome(SINGLE, [ret]) for ret in rets]

    def _attempt(self, task: Task) -> Outcome:
        return _outcome(task, splitting.attempt(self._run, task))

    def _run(self, task: Task) -> List[Any]:
        if task.kind != BATCH:
            rets = self._call(task.reqs)
            if not rets:
                raise WrongShape("net_inference returned no result")
            return rets
        size = self.batch_size if self.split_batch else len(task.reqs)
        return [
            ret for start in range(0, len(task.reqs), size or 1) for ret in self._call(task.reqs[start : start + size])
        ]

    def _call(self, reqs: Sequence[Dict[str, Any]]) -> List[Any]:
        rets = self.script.call([req if "params" in req else {**req, "params": {}} for req in reqs])
        return rets if self.files is None else [self._without_paths(ret, self.files) for ret in rets]

    def _without_paths(self, ret: Any, files: PictureFiles) -> Any:
        """A result, without the paths of pictures in its message, which clients get to see."""
        message = ret.get("message") if isinstance(ret, dict) else None
        if isinstance(message, str) and files.folder in message:
            return {**ret, "message": files.hidden(message)}
        return ret

    def body_of_element(self, name: str, content: bytes) -> Tuple[str, bytes]:
        """A request in JSON, or the bytes of a picture."""
        return requests.JSON if media_type(content) == requests.JSON else requests.OCTETS, content

    # Answers

    def hand_on(self, output: Any) -> Any:
        """The outcome, for another process to encode. This pool answers failures, and codes that ask for a new try."""
        if isinstance(output, Outcome):
            if output.error is not None:
                raise output.error
            ret = answers.Ret(output.rets[0], self.strict_codes) if output.kind == SINGLE else None
            if ret is not None and answers.may_be_retried(ret.code):
                raise Failed(ret.code, ret.message)
        return output

    def encode(self, output: Outcome, request: Request) -> Answer:
        """The platform's answer to a task. Raises the exception that it failed of, and WrongShape for a bad result."""
        if output.error is not None:
            raise output.error
        rets = [answers.Ret(given, self.strict_codes) for given in output.rets]
        if output.kind == BATCH:
            answer = self.encoder.batch(rets)
        else:
            answer = self.encoder.group(rets[0]) if output.kind == GROUP else self.encoder.single(rets[0])
        # After the encoder: `failure` counts a result that cannot be written.
        self._count_codes([ret.code for ret in rets])
        return answer

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """An error as the platform answers it: its code is the status; one without a code is 599."""
        if isinstance(error, Fetching):
            return Answer("", error.to_json(), flags=wire.FETCH)
        if isinstance(error, ClientError) and stage == "decode":
            return Problem(error.status, "bad_request", error.message)
        # A code from reading a request or its addresses is not the script's: the rule for codes does not apply.
        strict = self.strict_codes and stage != "decode"
        code = answers.known_code(error.code, strict) if isinstance(error, Failed) else FAILED
        code = code if code >= 300 else 500
        self._count_codes([code])
        return answers.error(code, self._text(error))

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """A code with a message is the script's own answer; every other exception is an error in the script."""
        return isinstance(error, (Failed, Fetching, ClientError))

    # Metrics

    def _count_codes(self, codes: Sequence[int]) -> None:
        """Count the codes of one answer; the front gets the counts with the last answer of a call."""
        for code in codes:
            self._codes[code] = self._codes.get(code, 0) + 1
        self._open -= 1
        if self._open <= 0 and self._codes:
            counts = {'panglot_item_codes_total{code="%d"}' % code: count for code, count in self._codes.items()}
            self._codes = {}
            self.port.tell(wire.METRIC, counts)

    def _tell_measured(self) -> None:
        deltas = self.measured.deltas()
        if deltas:
            self.port.tell(wire.METRIC, deltas)


def _outcome(task: Task, outcome: splitting.Outcome) -> Outcome:
    return Outcome(task.kind, outcome.output or (), outcome.error)


def _traceback_of_script(error: BaseException) -> str:
    """The traceback for the log; none for a code and a message, which are the script's own answer."""
    return "" if isinstance(error, Failed) else script_traceback(error)


DIALECT = Evals
