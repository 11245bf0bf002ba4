"""Scripts pinned to a device that is not there.

Nothing is changed unless `--device cpu` asks for it: then torch and MindSpore take the CPU wherever a
script names another device. Without it, `explain` recognises errors of the frameworks by the functions that raise them.
"""

from __future__ import annotations

import functools
import os
import sys
import traceback
from types import TracebackType
from typing import Any, Callable, Optional

from panglot_worker.compat.importing import after_import

Say = Callable[[str], None]

FIX = "--device cpu runs it on the CPU"
FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "eye", "from_file", "full", "full_like", "linspace", "logspace",
    "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "tensor",
    "zeros", "zeros_like",
)  # fmt: skip
MINDSPORE = ("/mindspore/context.py", "/mindspore/device_manager.py")
NO_EFFECT = ("set_device", "synchronize", "init")


def prepare(device: str, say: Say) -> None:
    """Map every other device to the CPU, if that is the device given."""
    if device == "cpu":
        once = _once(say)
        after_import("mindspore", lambda module: _map_mindspore(module, once))
        after_import("torch", lambda module: _map_torch(module, once))


def _once(say: Say) -> Say:
    """A `say` that tells each thing only once."""
    reported = set()

    def tell(text: str) -> None:
        if text not in reported:
            reported.add(text)
            say("the script asks for %s; --device cpu gives it the CPU" % text)

    return tell


# MindSpore


def _map_mindspore(mindspore: Any, tell: Say) -> None:
    def cpu(target: Any) -> str:
        if target != "CPU":
            tell('device_target="%s"' % target)
        return "CPU"

    def wrap_context(set_context: Any) -> Any:
        @functools.wraps(set_context)
        def mapped(**named: Any) -> Any:
            if "device_target" in named:
                named["device_target"] = cpu(named["device_target"])
            return set_context(**named)

        return mapped

    def wrap_device(set_device: Any) -> Any:
        @functools.wraps(set_device)
        def mapped(device_target: Any, device_id: Any = None) -> Any:
            return set_device(cpu(device_target))

        return mapped

    for module in (mindspore, mindspore.context):
        module.set_context = wrap_context(module.set_context)
    if hasattr(mindspore, "set_device"):
        mindspore.set_device = wrap_device(mindspore.set_device)


# torch


def _map_torch(torch: Any, tell: Say) -> None:
    def is_other(value: Any) -> bool:
        if isinstance(value, torch.device):
            return bool(value.type != "cpu")
        return isinstance(value, str) and value.partition(":")[0] in ("cuda", "npu", "gpu")

    def cpu(value: Any) -> Any:
        if not is_other(value):
            return value
        tell(str(value))
        return "cpu"

    def on_cpu(function: Any) -> Any:
        @functools.wraps(function)
        def mapped(*arguments: Any, **named: Any) -> Any:
            return function(*map(cpu, arguments), **{name: cpu(value) for name, value in named.items()})

        return mapped

    def stay(self: Any, *arguments: Any, **named: Any) -> Any:
        tell("cuda")
        return self

    for kind in (torch.Tensor, torch.nn.Module):
        kind.to = _without_index(on_cpu(kind.to))
        kind.cuda = stay
    for name in FACTORIES:
        if hasattr(torch, name):
            setattr(torch, name, on_cpu(getattr(torch, name)))
    for module in (torch, torch.jit):
        module.load = _to_cpu(module.load)
    for name in NO_EFFECT:
        setattr(torch.cuda, name, lambda *arguments, **named: None)


def _without_index(function: Any) -> Any:
    """The function `to`, which also takes the index of a GPU: `tensor.to(0)`."""

    @functools.wraps(function)
    def mapped(self: Any, *arguments: Any, **named: Any) -> Any:
        # Not `isinstance`: True is an int too, and names no device.
        if arguments and type(arguments[0]) is int:
            arguments = ("cuda:%d" % arguments[0], *arguments[1:])
        return function(self, *arguments, **named)

    return mapped


def _to_cpu(load: Any) -> Any:
    """Weights saved on any device, loaded to the CPU."""

    @functools.wraps(load)
    def mapped(f: Any, map_location: Any = None, *arguments: Any, **named: Any) -> Any:
        return load(f, "cpu", *arguments, **named)

    return mapped


# Explaining an error


def explain(error: Optional[BaseException]) -> str:
    """One sentence that names the missing device; empty when the error is about something else."""
    while error is not None:
        sentence = _explained(error.__traceback__)
        if sentence:
            return sentence
        error = error.__cause__ or error.__context__
    return ""


def _explained(frames: Optional[TracebackType]) -> str:
    for frame, _ in traceback.walk_tb(frames):
        file, function = frame.f_code.co_filename.replace(os.sep, "/"), frame.f_code.co_name
        if file.endswith(MINDSPORE) and function in ("set_device_target", "set_device"):
            wanted = frame.f_locals.get("target", frame.f_locals.get("device_target"))
            if not _mindspore_has(wanted):
                return "the script asks MindSpore for the device %s, which is not there" % wanted
        in_torch = file.endswith("/torch/cuda/__init__.py") or function == "_validate_device"
        if in_torch and "/torch/" in file and not _has_cuda():
            return "the script asks torch for a CUDA device, and torch sees none"
    return ""


def _mindspore_has(device: Any) -> bool:
    """Whether this MindSpore could run on a device; False for an older one, which cannot tell."""
    try:
        internals: Any = sys.modules["mindspore._c_expression"]
        return bool(internals.MSContext.get_instance().is_pkg_support_device(device))
    except (KeyError, AttributeError, TypeError):
        return False


def _has_cuda() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())
