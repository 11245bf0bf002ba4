"""Scripts for Tencent TI-ONE: a `tiinfer.Model`, or `mosec.Worker` classes added with `tiinfer.append_worker`.

The names that scripts import are in `platform`; the other files of this folder drive them.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import urllib.request  # noqa: F401  scripts say `import urllib` alone and use urllib.request
from types import ModuleType
from typing import Any, Callable, Union

from panglot_worker.compat import keras
from panglot_worker.dialects.base import Answer, AsksForPipeline, Dialect, Package, Problem, Request, Stages, warned
from panglot_worker.dialects.tiinfer import text
from panglot_worker.dialects.tiinfer.examples import published_example
from panglot_worker.dialects.tiinfer.model import Service
from panglot_worker.dialects.tiinfer.pipeline import Pipeline
from panglot_worker.errors import ScriptError
from panglot_worker.line.description import Description
from panglot_worker.scripts.loading import import_script

LOG_FORMAT = "%(levelname)-7s %(module)s:%(lineno)d    %(message)s"
ERROR_KEYS = ("error", "predict_err", "post_process_err")
"""A dict with one of these is a failure that the platform answers with 200."""

ANYTHING = {"description": "Any JSON value: the platform's methods have no hints of their own."}


class Tiinfer(Dialect):
    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.strict = bool(package.settings.get("strict_results", True))
        self.source: Union[Service, Pipeline]

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Import the script and load its model, or the stage of its pipeline that this worker is for.

        Raises AsksForPipeline when the script wants several pools, and ScriptError when it defines nothing to serve.
        """
        configure_logging(str(self.package.settings.get("log_level", "info")))
        model_dir = str(self.package.options.get("model_dir") or self.package.folder)
        # Before the import: it sets a variable that TensorFlow reads when the script imports it.
        legacy = keras.Legacy(self.package.folder, model_dir)
        platform = platform_module()
        progress("importing " + os.path.basename(self.package.script))
        module = import_script(self.package.script, platform.IMPORT_MODULE_NAME)
        classes = platform.server.model_classes(module)
        if classes:
            self.source = Service(self, classes, model_dir)
        elif platform.get_mosec_workers():
            self.source = Pipeline(self, platform.get_mosec_workers())
        else:
            raise ScriptError(
                "there is no subclass of tiinfer.Model in it, and it calls tiinfer.append_worker nowhere",
                self.package.script,
                fix="define class MyModel(tiinfer.Model) with load(self) and predict(self, request)",
            )
        pools = self.source.pools()
        if pools and self.may_ask_for_pipeline:
            raise AsksForPipeline(pools)
        with legacy.explaining(self.package.script):
            return self.source.load(progress)

    def result_function(self, request: Request) -> Any:
        return self.of_script(*self.source.functions)

    def describe(self) -> Description:
        return {
            **self.source.description(),
            "example": published_example(self.package.folder),
            "request_schema": ANYTHING,
            "response_schema": ANYTHING,
        }

    def warm_up(self, stages: Stages) -> Stages:
        self.source.warm_up()
        return stages

    # Bodies

    def decode(self, request: Request) -> Any:
        if not len(request.body):
            raise text.NoData
        return text.decode(request.body, self.limits)

    def encode(self, output: Any, request: Request) -> Answer:
        if type(output) is dict:
            for key in ERROR_KEYS:
                if key in output:
                    self.count('panglot_answer_errors_total{key="%s"}' % key)
        body, warning = text.encode(output, self.limits, self.nan, self.strict)
        return Answer(text.JSON, body, 200, warned(warning))

    def failure(self, error: BaseException, stage: str, request: Request) -> Union[Answer, Problem]:
        # The platform answers an empty body with 200.
        if isinstance(error, text.NoData):
            return Answer(text.PLAIN, text.NO_DATA)
        return self.source.failure(text.problem(error, stage))

    def blames_client(self, error: BaseException, answer: Union[Answer, Problem]) -> bool:
        """In a stream a failure has status 200 too, so the status does not show it."""
        return super().blames_client(error, answer) or text.problem(error, "").status < 500


def configure_logging(level: str) -> None:
    """Set logging up as the platform does before it imports a script, so that `logging.info` shows.

    Lines have no time: the server adds it.
    """
    logging.basicConfig(stream=sys.stdout, level=level.upper(), format=LOG_FORMAT)


def platform_module() -> ModuleType:
    """`tiinfer` as scripts will see it. Raises ScriptError when the package hides it behind a file of its own."""
    module = importlib.import_module("tiinfer")
    if not hasattr(module, "server"):
        file = getattr(module, "__file__", None) or "tiinfer"
        raise ScriptError("this file hides the platform's tiinfer from the script", file, fix="give it another name")
    return module


DIALECT = Tiinfer
