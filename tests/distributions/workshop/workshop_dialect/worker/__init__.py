"""Workshop's scripts in the worker."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Dict, Union

from panglot_worker.compat.importing import after_import
from panglot_worker.dialects.base import BETWEEN, Answer, Dialect, Problem, Request, Stages
from panglot_worker.line.description import Description
from panglot_worker.scripts import as_main


class Workshop(Dialect):
    captured_output = 100
    status_blames_client = False

    def load(self, progress: Callable[[str], None]) -> Stages:
        progress("running " + self.package.script)
        # The installed package has its own `start`; ours is in `platform/fallback`.
        after_import("workshop", lambda module: setattr(module, "start", as_main.hand_over))
        self.config: Dict[str, Any] = as_main.run(self.package.script, "workshop.start({...})").handed
        self.handler = self.config["handler"]
        if inspect.iscoroutinefunction(self.handler) or inspect.isasyncgenfunction(self.handler):
            self.server = "panglot_worker.items.concurrent:serve"
            self.slots = int(self.config.get("slots", 1))
        own = {"decode": "input" in self.config, "encode": "output" in self.config}
        return Stages(
            decode=self.decode,
            infer=self.handler,
            encode=self.encode,
            script_code=BETWEEN.union(stage for stage, is_own in own.items() if is_own),
        )

    def describe(self) -> Description:
        return {"entry": "handler", "platform": {"version": importlib.import_module("workshop").VERSION}}

    def decode(self, request: Request) -> Any:
        value = self.read(request)
        return self.config["input"](value) if "input" in self.config else value

    def encode(self, output: Any, request: Request) -> Answer:
        if "output" in self.config:
            output = self.config["output"](output)
        if isinstance(output, dict) and "slots" in output:
            self.change_slots(output["slots"])
        if isinstance(output, dict) and "replace" in output:
            self.replace_worker(output["replace"])
        return self.json_answer({"output": output, "printed": request.printed})

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        problem = super().failure(error, stage, request)
        if isinstance(problem, Problem) and self.config.get("answers_400"):
            return self.json_answer({"error": problem.message, "printed": request.printed}, 400)
        return problem


DIALECT = Workshop
