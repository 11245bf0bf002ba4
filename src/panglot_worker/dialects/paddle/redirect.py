"""`paddle.inference` as scripts for Paddle 2 know it, on Paddle 3 too.

Installed the moment the module is imported, before a script can take `Config` out of it.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from panglot_worker.compat import devices
from panglot_worker.compat.importing import after_import
from panglot_worker.dialects.paddle import machine
from panglot_worker.runtimes.paddle import model_files
from panglot_worker.runtimes.paddle.program_file import Input

WITH_GPU = "pip install paddlepaddle-gpu instead"


class Loaded(NamedTuple):
    """A model that a script made a predictor of."""

    program: str
    new: bool
    inputs: List[Input]
    predictor: Any
    switches: Dict[str, Any]
    """How it runs, in AutoLog's words."""


class NoGpu(model_files.Explained):
    """The script asks for a GPU, and Paddle has none. Paddle itself would go on without a word."""


class InWorker(NamedTuple):
    """The differences in a worker: a missing GPU is reported, or ignored where `--device cpu` says so."""

    on_cpu: bool


class Redirection:
    """What a script's models are loaded through. `loaded` grows with every predictor."""

    def __init__(self, onednn: bool, say: Callable[[str], None], worker: Optional[InWorker] = None) -> None:
        self.onednn = onednn
        self.say = say
        self.worker = worker
        self.loaded: List[Loaded] = []

    def install(self) -> None:
        warnings.filterwarnings("ignore", message="No ccache found")
        after_import("paddle.inference", self._take_over)

    def _take_over(self, module: Any) -> None:
        own = config_class(module.Config, self)
        create = module.create_predictor

        def create_predictor(config: Any) -> Any:
            predictor = create(config)
            self.note(config, predictor)
            return predictor

        module.Config = own
        module.create_predictor = create_predictor

    def note(self, config: Any, predictor: Any) -> None:
        program = str(config.prog_file()) if callable(getattr(config, "prog_file", None)) else ""
        known = bool(program) and os.path.isfile(program)
        new = known and model_files.content(program) == "json"
        inputs = model_files.inputs(program, new) if known else []
        self.loaded.append(Loaded(program, new, inputs, predictor, switches(config)))


def switches(config: Any) -> Dict[str, Any]:
    """The switches that are set; fewer where this Paddle does not tell."""
    paddle = sys.modules.get("paddle")
    environment = machine.environment(paddle)
    environment["paddle_version"] = getattr(paddle, "__version__", None)
    environment["paddle_commit"] = getattr(paddle, "__git_commit__", None)
    try:
        environment["runtime_device"] = "gpu" if config.use_gpu() else "cpu"
        environment["ir_optim"] = config.ir_optim()
        environment["enable_memory_optim"] = re.search(r"memory_optim\s*\|\s*true", str(config.summary())) is not None
        environment["enable_tensorrt"] = config.tensorrt_engine_enabled()
        environment["enable_mkldnn"] = config.mkldnn_enabled()
        environment["cpu_math_library_num_threads"] = config.cpu_math_library_num_threads()
        environment["precision"] = precision(config)
    except (AttributeError, TypeError, RuntimeError):
        pass  # another generation's Config
    return environment


def precision(config: Any) -> str:
    if config.tensorrt_engine_enabled():
        return machine.in_words(config.tensorrt_precision_mode())
    if config.mkldnn_enabled() and hasattr(config, "mkldnn_int8_enabled") and config.mkldnn_int8_enabled():
        return "int8"
    return machine.in_words(getattr(config, "_panglot_precision", ""))


class Redirected:
    """Goes before Paddle's own Config: finds the model under either generation's name, sets what the newer needs.

    Its own names begin with `_panglot`, so that they hide none of Paddle's.
    """

    _panglot: Redirection
    _panglot_new = False
    _panglot_precision: Any = ""

    def __init__(self, *files: Any, **named: Any) -> None:
        files = (*files, *named.values())
        super().__init__(*self._panglot_files(files))
        self._panglot_switch()
        if not self._panglot.onednn:
            self._panglot_call("disable_mkldnn", "disable_onednn")

    def _panglot_files(self, files: Any) -> Any:
        """The files as they are named here; what is not two names is left to Paddle. Raises BadModel."""
        if len(files) != 2 or not all(isinstance(file, str) for file in files):
            return files
        program, parameters = files
        if os.path.isdir(program):
            # A folder, and the files' common name.
            stem = os.path.join(program, parameters)
            program, parameters = stem + model_files.OLD, stem + ".pdiparams"
        path, self._panglot_new, parameters = model_files.resolve(program, parameters)
        version = str(getattr(sys.modules.get("paddle"), "__version__", ""))
        if self._panglot_new and version.startswith(("1.", "2.")):
            # It would be read as a program of its own generation, which ends the process.
            raise model_files.BadModel(
                "%s is a model of Paddle 3, and this is Paddle %s" % (path, version),
                "use Paddle 3, or export with FLAGS_enable_pir_api=0 in the environment",
            )
        if self._panglot_new and not os.path.realpath(path).endswith(model_files.NEW):
            self._panglot.say("%s is a model of Paddle 3 under an old name: it is loaded as .json" % program)
        return path, parameters

    def _panglot_switch(self) -> None:
        # Without both, enable_memory_optim() makes the predictor of a .json model fail.
        if self._panglot_new:
            self._panglot_call("enable_new_executor")
            self._panglot_call("enable_new_ir")

    def _panglot_call(self, *names: str) -> None:
        """Call the first of these that this Paddle has."""
        method = next((getattr(self, name) for name in names if hasattr(self, name)), None)
        if method is not None:
            method()

    def set_model(self, *files: Any) -> None:
        self._panglot_super("set_model", *self._panglot_files(files))
        self._panglot_switch()

    def enable_mkldnn(self, *given: Any) -> None:
        if self._panglot.onednn:
            self._panglot_super("enable_mkldnn", *given)

    def enable_onednn(self, *given: Any) -> None:
        if self._panglot.onednn:
            self._panglot_super("enable_onednn", *given)

    def enable_use_gpu(self, *given: Any, **named: Any) -> None:
        """Follow --device: the CPU where it says so, a clear error where there is no GPU, else the GPU as the script
        says.
        """
        worker = self._panglot.worker
        if worker is not None and worker.on_cpu:
            self._panglot.say("the script asks for a GPU; --device cpu gives it the CPU")
            self._panglot_super("disable_gpu")
            return
        missing = missing_gpu() if worker is not None else ""
        if missing:
            raise NoGpu("the script asks for a GPU, and " + missing, devices.FIX + "; for GPUs: " + WITH_GPU)
        self._panglot_precision = named.get("precision_mode", given[2] if len(given) > 2 else "")
        self._panglot_super("enable_use_gpu", *given, **named)

    def enable_mkldnn_bfloat16(self) -> None:
        self._panglot_precision = "bfloat16"
        self._panglot_super("enable_mkldnn_bfloat16")

    def _panglot_super(self, name: str, *given: Any, **named: Any) -> None:
        getattr(super(), name)(*given, **named)


def missing_gpu() -> str:
    """Why Paddle has no GPU; empty when it has one, or does not say."""
    paddle: Any = sys.modules.get("paddle")
    try:
        if not paddle.is_compiled_with_cuda():
            return "this Paddle %s is built for CPUs only" % paddle.__version__
        return "" if paddle.device.cuda.device_count() else "Paddle sees none on this machine"
    except AttributeError:
        return ""


def config_class(original: Any, redirection: Redirection) -> Any:
    """Paddle's Config with `Redirected` before it, under its own name."""
    if issubclass(original, Redirected):
        # Of `panglot shims`, when the server itself was started with them.
        original = original.__bases__[1]
    return type(original.__name__, (Redirected, original), {"_panglot": redirection, "__module__": original.__module__})
