"""Our own dialect: a function `predict(request)`, a class `Model` with optional stages, functions with routes."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Dict, List, Optional, cast

from panglot_worker.bodies import schema, streams
from panglot_worker.bodies.response import Response
from panglot_worker.dialects.base import Dialect, Package, Request, Stages, TensorStages
from panglot_worker.dialects.plain import finding, tensors
from panglot_worker.dialects.plain.endpoints import Bodies, EncodedPart, Endpoint, is_async, takes_one
from panglot_worker.errors import ScriptError
from panglot_worker.items.tensors.rows import with_rows
from panglot_worker.line import wire
from panglot_worker.line.description import Description
from panglot_worker.scripts import current
from panglot_worker.scripts.loading import import_script

HOOKS = ("load", "preprocess", "predict", "predict_batch", "predict_frame", "postprocess", "example", "close")


class Plain(Dialect):
    """Scripts in our own convention. What they define beside `predict`, `HOOKS` lists."""

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.bodies = Bodies(self.limits, self.nan)
        self.hooks: Dict[str, Callable[..., Any]] = {}
        self.endpoints: List[Endpoint] = []
        self.asynchronous = False
        self.module: Any = None
        self.owner: Any = None
        """The object with the hooks: the script's `Model`, or the script itself."""

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script, construct its `Model` if it has one, and run its `load()`. Raises ScriptError."""
        progress("importing " + os.path.basename(self.package.script))
        self.module = owner = import_script(self.package.script)
        if isinstance(getattr(owner, "Model", None), type):
            progress("constructing Model")
            owner = owner.Model()
        self.owner = owner
        self.hooks = {name: getattr(owner, name) for name in HOOKS if callable(getattr(owner, name, None))}
        self.endpoints = finding.endpoints(owner, self.module, self.hooks, self.package)
        if self.package.options.get("chat") or self.package.options.get("embed"):
            self.endpoints += self._openai_endpoints()
        if "load" in self.hooks and self.package.does("inference"):
            progress("running load()")
            self.settled(self.hooks["load"]())
        stages = self._stages()
        self._check_pool()
        if self.package.options.get("frames") and "predict_frame" in self.hooks:
            return self._with_videos(stages)
        return stages

    def _openai_endpoints(self) -> List[Endpoint]:
        """The routes that OpenAI's clients call, which lead to `chat` and `embed`."""
        from panglot_worker.dialects.plain.chat import finding as chat_finding

        return chat_finding.endpoints((self.owner, self.module), self.package, self.client_has_left)

    def client_has_left(self) -> bool:
        """Whether nobody waits for the call in progress any more."""
        self.port.poll()
        return bool(current.running) and current.running[0].id in self.port.cancelled

    def _with_videos(self, stages: Stages) -> Stages:
        if stages.infer_batch is not None or self.asynchronous or self.package.pool:
            raise ScriptError("predict_frame needs a script in one process", self.package.script,
                              fix="leave out --pools")  # fmt: skip
        from panglot_worker.dialects.plain import videos

        takes_one(self.hooks["predict_frame"], "predict_frame")
        videos.check_libraries(self.package)
        return videos.with_videos(stages, self.hooks["predict_frame"], self.package.settings)

    def _check_pool(self) -> None:
        """Warn of a pool for a stage that the script does not have. Raises ScriptError for a pool behind a stream."""
        pool = self.package.pool
        name = pool.get("name", "")
        streams = [endpoint.name for endpoint in self.endpoints if endpoint.may_stream]
        if pool and self.package.does("inference") and not pool["last"] and streams:
            raise ScriptError("an answer in parts, as %s gives, cannot be handed to another pool" % streams[0],
                              self.package.script, fix="leave postprocess out of --pools")  # fmt: skip
        if name in ("preprocess", "postprocess") and name not in self.hooks and not self.package.worker:
            self.warn("the script has no %s: its pool only reads or writes the bodies" % name)

    def _stages(self) -> Stages:
        """The stages of the first endpoint, with those of all by their route where there are several."""
        self.asynchronous = any(endpoint.asynchronous for endpoint in self.endpoints)
        if self.asynchronous:
            self.slots = int(self.package.settings.get("slots", 16))
            self.server = "panglot_worker.items.concurrent:serve"
        uses_request = bool(self.package.options.get("uses_request"))
        most = int(self.package.settings.get("max_batch", 32))
        made = {own.path.encode(): own.stages(self.bodies, self._called, uses_request) for own in self.endpoints}
        for path, own in zip(list(made), self.endpoints):
            stages = made[path]
            # Calls that are awaited run side by side, each with one item.
            made[path] = (
                stages._replace(infer_batch=None) if self.asynchronous else with_rows(stages, own.max_batch or most)
            )
        first = next(iter(made.values()))
        if len(made) == 1:
            self.max_batch = first.max_batch
            return first
        return first._replace(by_route=made)

    def tensors(self) -> Optional[TensorStages]:
        """Arrays by name for the first endpoint; one item for each row where that takes batches."""
        if type(self.endpoints[0]) is not Endpoint:
            return None
        return tensors.taking(self.endpoints[0], self.bodies)

    def result_function(self, request: Request) -> Callable[..., Any]:
        by_path = {endpoint.path.encode(): endpoint for endpoint in self.endpoints}
        endpoint = by_path.get(request.head.route, self.endpoints[0])
        return endpoint.postprocess or endpoint.function

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a stage: what it returns is awaited here, unless the server of async scripts does that."""
        return self._awaiting(function) if is_async(function) and not self.asynchronous else function

    def _awaiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *values, **named: self.settled(function(*values, **named))

    def describe(self) -> Description:
        """The description of the API: that of the first endpoint, and of all by path where there are several."""
        described = {
            endpoint.path: endpoint.describe(self.bodies, self.example_of(endpoint)) for endpoint in self.endpoints
        }
        if any(value is Response for value in vars(self.module).values()):
            for about in described.values():
                about["any_status"] = True
        first = next(iter(described.values()))
        whole = cast(Description, {**first, "summary": self._summary(self.endpoints[0].function)})
        if len(described) > 1:
            whole["routes"] = described
        return whole

    def _summary(self, entry: Any) -> str:
        """The docstring of the class, of the function, or of the script."""
        of_class = schema.documentation(self.owner) if self.owner is not self.module else None
        written = (of_class, schema.documentation(entry), schema.documentation(self.module))
        return next((text for text in written if text), "")

    def example_of(self, endpoint: Endpoint) -> Any:
        return self.settled(endpoint.make_example()) if endpoint.make_example is not None else None

    def warm_up(self, stages: Stages) -> Stages:
        """Run the script's example through all stages; of an answer in parts only the first is made."""
        value = self.example_of(self.endpoints[0])
        if value is not None:
            self._run_example(self.endpoints[0].prepared(value), stages, example_request(self.endpoints[0].path))
        return stages

    def _run_example(self, value: Any, stages: Stages, request: Request) -> None:
        """Run a value through all stages, as if it had come with a request of its own."""
        current.running[:] = (request,)
        try:
            if stages.preprocess is not None:
                value = self.settled(stages.preprocess(value))
            output = stages.infer(value)
            if inspect.isgenerator(output):
                next(output, None)
                output.close()
            elif not inspect.isasyncgen(output):
                output = self.settled(output)
                if stages.postprocess is not None:
                    output = self.settled(stages.postprocess(output))
                self.bodies.encode(output, request)
        finally:
            current.running.clear()

    def stream_type(self, request: Request) -> str:
        """Clients of OpenAI's routes want events, whatever their Accept says."""
        return streams.EVENTS if request.head.route.startswith(b"/v1/") else super().stream_type(request)

    def encode_part(self, output: Any, content_type: str) -> bytes:
        return output if isinstance(output, EncodedPart) else super().encode_part(output, content_type)

    def close(self) -> None:
        if "close" in self.hooks:
            self.settled(self.hooks["close"]())


def example_request(path: str) -> Request:
    """A request to go with the script's example, for scripts that call `panglot.request()`."""
    route = path.encode()
    head = wire.Head(b"example", route, path=route, client=b"127.0.0.1", headers=b"host:127.0.0.1")
    return Request(wire.Item(0, 60.0, head.pack(), b""))


DIALECT = Plain
