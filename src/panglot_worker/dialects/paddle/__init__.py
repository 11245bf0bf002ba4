"""Scripts of Paddle's TIPC chain: a class InferenceEngine, driven step by step or by the script's own driver.

What the front read from the source (shape, inputs, names of the result) comes in the package's options. One engine,
and so one predictor, per worker, on its main thread: two threads in one predictor give silently wrong answers.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type, Union

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages, TensorStages
from panglot_worker.dialects.paddle import answers, arguments, arrays, batching, contents, describing, signals, tensors
from panglot_worker.dialects.paddle.engine import Driven, Stepped
from panglot_worker.dialects.paddle.private_files import PrivateFiles
from panglot_worker.dialects.paddle.redirect import InWorker, Redirection
from panglot_worker.dialects.paddle.requests import Reader, Upload, Value, Wanted
from panglot_worker.errors import ClientError, ScriptError
from panglot_worker.line.description import Description
from panglot_worker.runtimes.paddle.model_files import Explained
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import import_script
from panglot_worker.tensors import outputs
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor

ENGINE = "InferenceEngine"
PREDICT = b"/predict"


class Inputs(Dict[str, Value]):
    """The inputs of one request by name, and the private files made of them."""

    def __init__(self, values: Dict[str, Value]) -> None:
        super().__init__(values)
        self.files: List[str] = []


class Paddle(Dialect):
    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        options, settings = package.options, package.settings
        self.wanted = [Wanted(**field) for field in options.get("inputs", ())]
        self.names: List[str] = list(options.get("names", ()))
        self.bgr = bool(options.get("bgr"))
        self.stepped = options.get("shape") == "engine"
        device = os.environ.get("PANGLOT_DEVICE", settings.get("device", ""))
        self.redirection = Redirection(bool(settings.get("onednn", True)), self._say, InWorker(device == "cpu"))
        self.files = PrivateFiles()
        self._open: Dict[int, Inputs] = {}
        self._hinted: List[str] = []
        self.kind: Type[Any] = object
        self.source: Union[Stepped, Driven]
        self.reader = Reader(self.wanted, self.limits)

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Build the script's engine with our paths and devices in place of its own, and return its stages."""
        folder = os.path.dirname(self.package.script)
        if sys.path[0] != folder:
            sys.path.insert(0, folder)
        folder_note = self.package.options.get("folder_note", "")
        if folder_note and self.package.worker == 0:
            self.note(folder_note)
        self.redirection.install()
        with signals.preserved(), self._explained():
            self.kind = self._build(progress)
        self.reader = self._reader()
        return Stages(
            decode=self.decode,
            preprocess=self.preprocess if self.stepped else None,
            infer=self.infer,
            postprocess=self.postprocess if self.stepped else None,
            encode=self.encode,
        )

    def describe(self) -> Description:
        described = describing.describe(
            self.package, self.kind, self.wanted, self.names, self.source.samples(self.wanted)
        )
        if self.redirection.loaded:
            described["autolog"] = self.redirection.loaded[0].switches
        return described

    def _build(self, progress: Callable[[str], None]) -> Type[Any]:
        """Import the script, parse its arguments, build its engine; the engine's class."""
        script, options = self.package.script, self.package.options
        progress("importing " + os.path.basename(script))
        module = import_script(script)
        kind: Type[Any] = getattr(module, ENGINE)
        progress("reading its arguments")
        given = arguments.parse(module, script, options.get("driver", ""), options.get("get_arguments", ""))
        progress("building " + ENGINE)
        self.source = (Stepped if self.stepped else Driven)(module, kind, given, options)
        return kind

    def _reader(self) -> Reader:
        """What reads requests, with the inputs that were given on the script's command line."""
        options, settings = self.package.options, self.package.settings
        given = self.source.given(options.get("given", ()))
        allowed, unpickles = bool(settings.get("allow_pickle")), bool(options.get("unpickles"))
        return Reader(self.wanted, self.limits, allowed, unpickles, given)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Report a bad model, or a missing device, in one line that names the line of the script."""
        try:
            yield
        except Explained as error:
            lines = [
                entry.lineno
                for entry in traceback.extract_tb(error.__traceback__)
                if os.path.abspath(entry.filename) == self.package.script
            ]
            raise ScriptError(error.problem, self.package.script, (lines or [0])[-1] or 0, error.fix) from None

    def _say(self, text: str) -> None:
        """Warn once per server: the first worker speaks for all."""
        if self.package.worker == 0:
            self.warn(text)

    def warm_up(self, stages: Stages) -> Stages:
        """Run the script's own default input, then see whether requests may share a run of the model."""
        samples = self.source.samples(self.wanted)
        if not self.stepped:
            if samples:
                self.source.infer(samples)
            return stages
        prepared = None
        if samples:
            prepared = self.source.prepare(samples)
            self.source.postprocess(self.infer(prepared))
        elif len(self.wanted) == 1 and self.wanted[0].picture:
            prepared = self._prepared_noise()
        return stages._replace(infer_batch=self.infer_batch) if self._may_share(prepared) else stages

    def _prepared_noise(self) -> Any:
        """The result of preprocess for a test picture; None when it rejects the picture."""
        path = self.files.write(contents.noise(), ".png", inside_folder=self.wanted[0].kind == "folder")
        try:
            return self.source.prepare({self.wanted[0].name: path})
        except Exception:
            return None
        finally:
            self.files.remove([path])

    def _may_share(self, sample: Any) -> bool:
        """Whether requests get the same answers when they share a run of the model. The log reports a difference."""
        loaded = self.redirection.loaded
        if self.package.options.get("single") or self.source.left_something or batching.cannot(loaded):
            return False
        checks = batching.samples(loaded[0], sample)
        try:
            difference = batching.differs(self.infer, checks) if checks else ""
        except Exception as error:
            difference = "a single run fails: %s" % type(error).__name__
        if difference:
            self._say("requests are not batched: " + difference)
        return bool(checks) and not difference

    def result_function(self, request: Request) -> Any:
        return self.of_script(*self.source.functions)

    # A request

    def decode(self, request: Request) -> Inputs:
        """Read the inputs out of a request: JSON or a form on /predict, key and value as Paddle Serving's clients send
        them.
        """
        head = request.head
        if head.route == PREDICT:
            content_type = head.content_type.decode("latin-1")
            inputs = Inputs(self.reader.decode(content_type, request.body))
        else:
            sent = codec.decode("application/json", request.body, self.limits)
            if not isinstance(sent, dict):
                raise ClientError("the request must be a JSON object with key and value")
            inputs = Inputs(self.reader.from_pairs(sent.get("key"), sent.get("value")))
        return self._opened(inputs, request)

    def tensors(self) -> TensorStages:
        return TensorStages(
            self._decode_tensors, self._encode_tensors, tensors.described(self.wanted),
            platform="paddle_inference", takes_bodies=False,
        )  # fmt: skip

    def _decode_tensors(self, infer: Infer, request: Request) -> Inputs:
        return self._opened(Inputs(tensors.inputs_of(infer, self.reader)), request)

    def _encode_tensors(self, output: Any, request: Request) -> List[Tensor]:
        self._finish(request)
        return outputs.tensors_of(
            output, lambda value: bytes(answers.encode(value, "", self.limits, self.nan, False).body)
        )

    def _opened(self, inputs: Inputs, request: Request) -> Inputs:
        """The inputs, whose files are removed with the answer."""
        # In a pipeline of pools another process answers, so that `preprocess` removes the files.
        if not self.package.pool:
            self._open[request.id] = inputs
        return inputs

    def _placed(self, inputs: Inputs) -> Dict[str, str]:
        """The values for the script: texts, and paths of private files."""
        files = {}
        for field in self.wanted:
            value = inputs[field.name]
            if isinstance(value, Upload):
                path = self.files.write(value.content, value.ending, inside_folder=field.kind == "folder")
                # At once: when writing the next file fails, this one is removed with the failure's answer.
                inputs.files.append(path)
                files[field.name] = path
            else:
                files[field.name] = value
        return files

    def preprocess(self, inputs: Inputs) -> Any:
        """Run the script's preprocess on one request's inputs, written to files where it wants paths."""
        try:
            with self._blaming(inputs):
                return self.source.prepare(self._placed(inputs))
        finally:
            if self.package.pool:
                # The answer is written in another process, which knows of no files.
                self.files.remove(inputs.files)

    def infer(self, value: Any) -> Any:
        if self.stepped:
            return self.infer_batch([value])[0]
        with self._blaming(value), self._explaining([]):
            return answers.named(self.source.infer(self._placed(value)), self.names)

    def infer_batch(self, values: List[Any]) -> Sequence[Any]:
        with self._explaining(values):
            return batching.run(self.source.infer, values)

    def postprocess(self, output: Any) -> Any:
        return answers.named(self.source.postprocess(output), self.names)

    def encode(self, output: Any, request: Request) -> Answer:
        self._finish(request)
        if request.head.route != PREDICT:
            return answers.serving(output, self.limits, self.nan)
        return answers.encode(output, request.head.accept.decode("latin-1"), self.limits, self.nan, self.bgr)

    def _finish(self, request: Request) -> None:
        """Forget the inputs of a request and remove their files. Does nothing the second time."""
        inputs = self._open.pop(request.id, None)
        if inputs is not None:
            self.files.remove(inputs.files)

    def close(self) -> None:
        self.files.close()

    # Failures

    @contextlib.contextmanager
    def _blaming(self, inputs: Inputs) -> Iterator[None]:
        """A script's failure on a picture that nobody can read is the client's."""
        try:
            yield
        except Exception as error:
            for field in self.wanted:
                value = inputs[field.name]
                reason = contents.unreadable(value.content) if field.picture and isinstance(value, Upload) else ""
                if reason:
                    raise ClientError("%s cannot be read as an image: %s" % (field.name, reason)) from error
            raise

    @contextlib.contextmanager
    def _explaining(self, values: List[Any]) -> Iterator[None]:
        """Explain a failed run of the model, where the reason is known. Raises ClientError for an array of a client."""
        try:
            yield
        except Exception as error:
            loaded = self.redirection.loaded
            if (
                isinstance(error, NotImplementedError)
                and self.redirection.onednn
                and any(model.new for model in loaded)
            ):
                self._hint(
                    "an operation of this model fails in oneDNN, as upsampling does in Paddle 3.3: "
                    "add --no-onednn, or use Paddle 3.2"
                )
            expected = loaded[0].inputs[0].dtype if len(loaded) == 1 and len(loaded[0].inputs) == 1 else ""
            types = {str(getattr(value, "dtype", expected)) for value in values} - {expected}
            if expected and types:
                self._blame_type(types.pop(), expected, error)
            raise

    def _blame_type(self, got: str, expected: str, error: Exception) -> None:
        if len(current.running) == 1 and self._sent_as_array():
            raise ClientError("the model takes %s, not %s" % (expected, got)) from error
        self._hint(
            "run got an array of %s and the model takes %s: end preprocess with .astype('%s')"
            % (got, expected, expected)
        )

    def _sent_as_array(self) -> bool:
        """Whether the client of the call in progress chose the type of its array."""
        inputs = [self._open[request.id] for request in current.running if request.id in self._open]
        uploads = [value for values in inputs for value in values.values() if isinstance(value, Upload)]
        return any(arrays.dtype(upload.content) for upload in uploads)

    def _hint(self, text: str) -> None:
        """Write a hint to the log, once."""
        if text not in self._hinted:
            self._hinted.append(text)
            self.warn(text)

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        self._finish(request)
        problem = super().failure(error, stage, request)
        if request.head.route == PREDICT or isinstance(problem, Answer):
            return problem
        number = answers.BAD_INPUT if problem.status < 500 else answers.UNKNOWN
        return answers.serving_answer(number, problem.message)

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """An answer of Paddle Serving is 200 whatever happened."""
        status: Optional[int] = getattr(error, "status", None)
        return type(status) is int and 400 <= status <= 499


DIALECT = Paddle
