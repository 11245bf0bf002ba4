"""A script with a subclass of `tiinfer.Model`."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Type, Union

from panglot_worker.bodies import schema
from panglot_worker.dialects.base import Answer, Problem, Stages
from panglot_worker.errors import ScriptError
from panglot_worker.items.results import with_one
from panglot_worker.line.description import Description

if TYPE_CHECKING:
    from panglot_worker.dialects.tiinfer import Tiinfer

log = logging.getLogger("tiinfer")
BEFORE, AFTER = ["decode", "preprocess"], ["postprocess", "encode"]


class Service:
    """Constructs and loads the model, and gives the dialect its stages."""

    def __init__(self, dialect: "Tiinfer", classes: List[Type[Any]], model_dir: str) -> None:
        self.dialect = dialect
        self.platform = importlib.import_module("tiinfer")
        self.const = importlib.import_module("tiinfer.const")
        self.kind = classes[0]
        self.model_dir = model_dir
        self.model: Any = None
        self.stages: Stages
        if len(classes) > 1:
            others = ", ".join(sorted(kind.__name__ for kind in classes[1:]))
            dialect.warn("several models: %s is served, %s not" % (self.kind.__name__, others))
        if self.platform.get_mosec_workers():
            dialect.warn("workers added with append_worker are not used beside a tiinfer.Model")

    def pools(self) -> List[Dict[str, Any]]:
        """The pools for the platform's counts; none when one process does all.

        Where only one of the two counts is set the platform omits the other step; here it runs beside inference.
        """
        self._check_counts()
        before, after = self.platform.get_ti_preprocess_nums(), self.platform.get_ti_postprocess_nums()
        if not before and not after:
            return []
        stages = ([] if before else BEFORE) + ["inference"] + ([] if after else AFTER)
        pools = [{"name": "preprocess", "workers": before, "stages": BEFORE}] if before else []
        pools.append({"name": "inference", "workers": 0, "stages": stages})
        pools += [{"name": "postprocess", "workers": after, "stages": AFTER}] if after else []
        return pools

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Construct the model and run its `load()`, where this worker infers. Raises ScriptError when that fails."""
        progress("constructing " + self.kind.__name__)
        self.model = self._construct()
        self.stages = self._choose_stages()
        self.dialect.workers = self._workers()
        # In the other pools the model has no weights, as in these stages of the platform.
        if self.dialect.package.does("inference"):
            progress("running load()")
            self._check_loaded(self.model.load())
        return self.stages

    def _construct(self) -> Any:
        try:
            inspect.signature(self.kind).bind(self.model_dir)
        except TypeError:
            file, line = file_and_line(self.kind.__init__)
            problem = "%s.__init__ must take the model's folder" % self.kind.__name__
            raise ScriptError(problem, file, line, "def __init__(self, model_dir)") from None
        except ValueError:
            # A class of compiled code has no signature to look at.
            pass
        return self.kind(self.model_dir)

    def _check_counts(self) -> None:
        for name, least in (
            (self.const.PREPROCESS_NUMS, 0),
            (self.const.INFERENCE_NUMS, 1),
            (self.const.POSTPROCESS_NUMS, 0),
            (self.const.MAX_BATCH_SIZE, 1),
        ):
            value = self.const.given(name)
            if value is not None and (type(value) is not int or value < least):
                raise ScriptError(
                    "%s is %r; it must be at least %d" % (name, value, least), self.dialect.package.script
                )

    def _workers(self) -> Optional[int]:
        given: Optional[int] = self.const.given(self.const.INFERENCE_NUMS)
        if given is not None:
            return given
        own = getattr(self.model, "workers", None)
        if own is None or (type(own) is int and own >= 1):
            return own
        self.dialect.warn("self.workers is %r, which is no number of processes; one is started" % (own,))
        return None

    def _check_loaded(self, result: Any) -> None:
        if result:
            log.info("load() returned %r: the model is loaded", result)
        # Some scripts return nothing and set `self.ready`, as KServe's models do.
        elif result is None and getattr(self.model, "ready", False):
            log.info("load() returned nothing, and self.ready is true: the model is loaded")
        else:
            file, line = file_and_line(self.kind.load)
            raise ScriptError("load() returned %r" % (result,), file, line, "return True when the model is loaded")

    # Stages

    def _choose_stages(self) -> Stages:
        """Which methods are the dialect's stages, by the counts and the batch size."""
        dialect, model, platform = self.dialect, self.model, self.platform
        size = platform.get_ti_inference_max_batch_size()
        if platform.Is_Multi_Framework_Type() or dialect.package.pool:
            pre, infer, post = model.preprocess, model.predict, model.postprocess
        # In one process the platform calls the model itself: a script's own `__call__` may do more than these steps.
        elif size > 1 or type(model).__call__ is not platform.Model.__call__:
            pre = post = None
            infer = model
        else:
            pre, infer, post = model.preprocess, model.predict, model.postprocess
        if size > 1:
            dialect.max_batch = size
        return Stages(
            decode=dialect.decode,
            preprocess=pre,
            infer=with_one(infer) if size > 1 else infer,
            infer_batch=infer if size > 1 else None,
            postprocess=post,
            encode=dialect.encode,
            decodes_ahead=True,
        )

    @property
    def functions(self) -> Sequence[Any]:
        """The script's functions that may make the result, the last first."""
        return self.model.postprocess, self.model.predict, type(self.model).__call__

    def description(self) -> Description:
        """The hints of the platform's own methods say nothing, so there is no schema."""
        return {
            "entry": self.kind.__name__,
            "stages": [name for name in ("preprocess", "postprocess") if getattr(self.stages, name) is not None],
            "summary": (schema.documentation(self.model) or "") if self.kind.__doc__ else "",
            "streams": False,
        }

    def warm_up(self) -> None:
        """Does nothing: the platform warms up the workers of `append_worker` alone."""

    def failure(self, problem: Problem) -> Union[Answer, Problem]:
        """How a failed request is answered."""
        return problem


def file_and_line(function: Any) -> Any:
    """File and line of a function, as far as it has them."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = getattr(code, "co_filename", "")
    # A method that the script has not overridden: our own line would help nobody.
    if os.sep + "platform" + os.sep in file:
        return "", 0
    return file, getattr(code, "co_firstlineno", 0)
