"""ACME's scripts in the worker: standard library only, and the CPython the script needs."""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable

from panglot_worker.dialects.acme.bodies import question_of

from panglot_worker.dialects.base import Answer, Dialect, Request, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.line.description import Description
from panglot_worker.scripts.loading import import_script


class Acme(Dialect):
    streams = False

    def load(self, progress: Callable[[str], None]) -> Stages:
        progress("importing " + os.path.basename(self.package.script))
        import_script(self.package.script)
        marked = importlib.import_module("acme").MARKED
        if not marked:
            raise ScriptError("no function is marked with @acme.answers", self.package.script, fix="mark one")
        return Stages(decode=self.decode, infer=marked[-1], encode=self.encode)

    def describe(self) -> Description:
        return {"entry": "answer", "stages": [], "summary": "", "example": {"kind": "json", "value": {"question": "?"}}}

    def decode(self, request: Request) -> Any:
        return question_of(bytes(request.body))

    def encode(self, output: Any, request: Request) -> Answer:
        return self.json_answer({"answer": output, "signed": self.package.settings["signature"]})


DIALECT = Acme
