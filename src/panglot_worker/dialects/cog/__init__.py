"""Predictors of Cog, the form of models on Replicate: a class with `setup` and `predict`, or a function."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Optional, Union

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Dialect, Package, Problem, Request, Stages
from panglot_worker.dialects.cog import answers, client_files, schema
from panglot_worker.dialects.cog.events import Event, KeepAlive, LogEvents
from panglot_worker.dialects.cog.files import Files
from panglot_worker.dialects.cog.prediction import Prediction, now
from panglot_worker.dialects.cog.predictor import Predictor
from panglot_worker.dialects.cog.signature import BadInput
from panglot_worker.dialects.cog.uploads import Uploads
from panglot_worker.dialects.cog.values import BadValue
from panglot_worker.errors import ClientError, EncodeError, described, message_of
from panglot_worker.items.capturing import Capture
from panglot_worker.items.unsendable import explained
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.scripts.loading import script_traceback

HEALTH, TRAININGS, FILES = b"/health-check", b"/trainings", b"/v1/files"
CONCURRENT = "panglot_worker.items.concurrent:serve"
EVENTS = "text/event-stream"
NO_STREAM = "This model does not support streaming responses. Add @cog.streaming to predict() to enable SSE."


class Cog(Dialect):
    """Serves one predictor: a prediction at a time on the main thread, or several where its method is awaited."""

    captured_output = 65536
    reads_bars = True

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.shows_traceback = bool(package.settings.get("dev"))
        self.predictor: Predictor
        self.trainer: Optional[Predictor] = None
        self.upload_url = str(package.settings.get("upload_url") or "")
        self.setup: Dict[str, Any] = {}

    # Loading

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, construct its predictor and run `setup()`. Raises ScriptError."""
        progress("importing " + os.path.basename(self.package.script))
        began, capture = now(), Capture(self.port, self.captured_output)
        with capture.listening():
            self.predictor = Predictor(self.package.script, str(self.package.options.get("class") or ""))
            if self.package.does("inference"):
                progress("running setup()")
                self.settled(self.predictor.set_up())
            self.setup = {"started_at": began, "completed_at": now(), "logs": capture.text, "status": "succeeded"}
        self._load_trainer()
        infer: Callable[[Any], Any] = self._infer
        if self.predictor.is_async:
            self.server = CONCURRENT
            self.slots = self.predictor.concurrency or int(self.package.options.get("concurrency") or 1)
            infer = self._infer_awaited
        # Also without a check of its own: during a reload the front may know that of another worker.
        routes = {
            FILES: Stages(decode=self._file, infer=client_files.shown, encode=self._as_json),
            HEALTH: Stages(decode=_nothing, infer=self._health, encode=self._healthy),
        }
        return Stages(decode=self.decode, infer=infer, encode=self.encode, by_route=routes)

    def _load_trainer(self) -> None:
        """Import the function that trains. Where a module that it needs is missing, only trainings fail."""
        named = self.package.options.get("train")
        if not named or not self.package.does("inference"):
            return
        file, name = named
        try:
            self.trainer = Predictor(os.path.join(self.package.folder, file), name)
        except ImportError as error:
            self.warn("%s cannot be imported, so that trainings fail: %s" % (file, message_of(error)))

    def describe(self) -> Description:
        """The inputs as a schema, with an example of their defaults; and the platform's own document."""
        signature = self.predictor.signature
        inputs = schema.input_schema(signature, is_whole=True)
        example = self.predictor.example()
        training = self.trainer.signature if self.trainer is not None else None
        return {
            "entry": self.predictor.entry,
            "summary": self.predictor.summary,
            "request_schema": {"type": "object", "properties": {"input": inputs}},
            "request_types": [codec.JSON],
            "example": {"kind": "json", "value": {"input": example}} if example is not None else None,
            "platform": {
                "openapi": schema.document(signature, training),
                "setup": self.setup,
                "slots": self.slots,
                "healthcheck": self.predictor.has_healthcheck,
            },
        }

    def result_function(self, request: Request) -> Any:
        predictor = self.trainer if request.head.route == TRAININGS else self.predictor
        return predictor.function if predictor is not None else None

    # A prediction

    def decode(self, request: Request) -> Prediction:
        """The inputs, files fetched. Raises ClientError, for what is no request of this predictor."""
        predictor = self.trainer if request.head.route == TRAININGS else self.predictor
        if predictor is None:
            raise RuntimeError("the function that trains cannot be imported; the server's log says why")
        wants_events = EVENTS.encode() in request.head.accept
        if wants_events and not predictor.streams:
            raise ClientError(NO_STREAM, status=406)
        body = answers.body_of(request, self.limits)
        values = predictor.signature.read(body["input"] or {})
        prediction = Prediction(predictor, body, request, predictor.shown(values), wants_events)
        if prediction.is_job and self.upload_url:
            name = str(body.get("id") or request.head.job.decode())
            prediction.write = Uploads(self.upload_url, name).write
        files = prediction.files = Files(self.package.settings, self.package.input_folder)
        # Before files are fetched: where that fails, `failure` finds the prediction here, and removes its files.
        request.context = prediction
        try:
            prediction.arguments = predictor.arguments(values, files)
        except BadValue as error:
            files.close()
            raise BadInput([error.described()]) from None
        return prediction

    def _comes_in_parts(self, prediction: Prediction) -> bool:
        """Whether outputs are sent as they come: to a client that reads events, and to the store of jobs."""
        return prediction.wants_events or (prediction.is_job and prediction.predictor.is_generator)

    def _infer(self, prediction: Prediction) -> Any:
        prediction.begin()
        if self._comes_in_parts(prediction):
            return self._events(prediction)
        if prediction.predictor.is_generator:
            return prediction.end(list(self._outputs(prediction)))
        return prediction.end(self.settled(prediction.predictor.function(**prediction.arguments)))

    def _outputs(self, prediction: Prediction) -> Iterator[Any]:
        """The outputs of a prediction as they come: one, or what a generator yields."""
        predictor = prediction.predictor
        value = predictor.function(**prediction.arguments)
        if not predictor.is_generator:
            yield self.settled(value)
        elif not predictor.is_async:
            yield from value
        else:
            # The function that trains may be awaited beside a predictor that is not.
            yield from self._settled_each(value)

    def _settled_each(self, parts: Any) -> Iterator[Any]:
        """What an async generator yields, where no event loop runs."""
        try:
            while True:
                try:
                    part = self.settled(parts.__anext__())
                except StopAsyncIteration:
                    return
                yield part
        except GeneratorExit:
            self.settled(parts.aclose())
            raise

    async def _infer_awaited(self, prediction: Prediction) -> Any:
        prediction.begin()
        if self._comes_in_parts(prediction):
            return self._awaited_events(prediction)
        if prediction.predictor.is_generator:
            return prediction.end([each async for each in self._awaited_outputs(prediction)])
        value = prediction.predictor.function(**prediction.arguments)
        return prediction.end(await value if prediction.predictor.is_async else value)

    async def _awaited_outputs(self, prediction: Prediction) -> AsyncIterator[Any]:
        """The same on the event loop."""
        # Here, so that predictors that are not awaited need no asyncio.
        from panglot_worker.items.concurrent import by_turns

        predictor = prediction.predictor
        value = predictor.function(**prediction.arguments)
        if not predictor.is_generator:
            yield await value if predictor.is_async else value
        else:
            async for each in value if predictor.is_async else by_turns(value):
                yield each

    # Answers

    def encode(self, prediction: Prediction, request: Request) -> Answer:
        """The prediction with its output; a file that is not there fails it. Raises EncodeError."""
        try:
            return self.json_answer(prediction.succeeded())
        finally:
            prediction.files.close()

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        """A refused request, or a failed prediction: that is an answer, with status 200."""
        self.cancelled(request)
        if isinstance(error, ClientError):
            return answers.refusal(error) or Problem(error.status, error.code, error.message)
        prediction = request.context
        if not isinstance(prediction, Prediction):
            return super().failure(error, stage, request)
        return self._failed(prediction, error)

    def cancelled(self, request: Request) -> None:
        """Remove the files of the prediction."""
        if isinstance(request.context, Prediction):
            request.context.files.close()

    def _failed(self, prediction: Prediction, error: BaseException) -> Answer:
        text = script_traceback(error) if self.shows_traceback else ""
        # The store of jobs knows failed ones by their status; the front answers them with 200.
        message = "the script called sys.exit(%s)" % error if isinstance(error, SystemExit) else message_of(error)
        return self.json_answer(prediction.failed(message, text), 500 if prediction.is_job else 200)

    def interruption(self) -> BaseException:
        """The platform's own exception, which scripts catch to clean up."""
        exception: BaseException = self.predictor.cog.CancelationException()
        return exception

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """Whether the log can leave a failure out: it has every failure of the script, whatever its status."""
        return isinstance(error, ClientError)

    # Server-sent events

    def _events(self, prediction: Prediction) -> Iterator[Event]:
        """What happens to a prediction, as the platform's events."""
        try:
            yield prediction.started_event()
            with self._telling(prediction):
                for index, each in enumerate(self._outputs(prediction)):
                    yield prediction.output_event(each, index)
            yield prediction.completed_event(prediction.predictor.is_generator)
        except Exception as error:
            yield self._failed_event(prediction, error)
        finally:
            prediction.files.close()

    async def _awaited_events(self, prediction: Prediction) -> AsyncIterator[Event]:
        """The same on the event loop."""
        try:
            yield prediction.started_event()
            with self._telling(prediction):
                index = 0
                async for each in self._awaited_outputs(prediction):
                    yield prediction.output_event(each, index)
                    index += 1
            yield prediction.completed_event(prediction.predictor.is_generator)
        except Exception as error:
            yield self._failed_event(prediction, error)
        finally:
            prediction.files.close()

    @contextlib.contextmanager
    def _telling(self, prediction: Prediction) -> Iterator[None]:
        """Send what the script prints, and its figures, as events between its outputs. The store of jobs has neither:
        it knows what is printed otherwise."""
        request = prediction.request
        if prediction.is_job:
            yield
            return
        tell = functools.partial(self._send, request)
        log, keep_alive = LogEvents(tell), KeepAlive(functools.partial(self._send_part, request))
        prediction.tell_figures(tell)
        if request.capture is not None:
            request.capture.on_print = log.heard
        try:
            yield
        finally:
            keep_alive.end()
            # Before the last event: a thread of the script may print at any time.
            if request.capture is not None:
                request.capture.flush()
                request.capture.on_print = None
            log.end()

    def _failed_event(self, prediction: Prediction, error: Exception) -> Event:
        """The last event of a prediction that failed; the log has the traceback, as for any other."""
        event = {"type": "failure", "item": prediction.request.id, "message": described(error)}
        function, folder = prediction.predictor.function, self.package.folder
        line = explained(error, function, folder) if isinstance(error, EncodeError) else ""
        self.port.tell(wire.EVENT, {**event, "traceback": line or script_traceback(error)})
        return prediction.failed_event(message_of(error))

    def _send(self, request: Request, event: Event) -> None:
        """Send an event while the script works on its next output, behind the first event, which was sent already."""
        self._send_part(request, self.encode_part(event, EVENTS))

    def _send_part(self, request: Request, body: bytes) -> None:
        self.port.reply(wire.Reply(request.id, 200, wire.MORE, wire.NO_TIMES, EVENTS.encode(), body))

    def stream_type(self, request: Request) -> str:
        return EVENTS

    def encode_part(self, output: Any, content_type: str) -> bytes:
        name, value = output
        return b"event: %b\ndata: %b\n\n" % (name.encode(), bytes(self.json_answer(value).body))

    # Files of Replicate's client

    def _file(self, request: Request) -> client_files.Sent:
        return client_files.read(request, self.limits)

    def _as_json(self, output: Any, request: Request) -> Answer:
        return self.json_answer(output)._replace(status=201)

    # Health

    def _health(self, value: None) -> Any:
        """What the predictor's own check gives: whether it is healthy, or its error."""
        checking = self.predictor.check_health()
        return checking if self.predictor.is_async else self.settled(checking)

    def _healthy(self, output: Any, request: Request) -> Answer:
        status: Dict[str, Any] = {"status": "READY" if output is True else "UNHEALTHY"}
        if output is not True:
            status["user_healthcheck_error"] = output or "Healthcheck failed: user-defined healthcheck returned False"
        return self.json_answer(status)


def _nothing(request: Request) -> float:
    return time.monotonic()


DIALECT = Cog
