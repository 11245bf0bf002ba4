"""The parts of a script, and the way of a request through them: step by step, or by the driver."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from panglot.dialects.paddle import driver as drivers
from panglot.dialects.paddle import inputs, parser
from panglot.errors import StartError
from panglot.packages.source import Function, functions, imported, parse

ENGINE = drivers.ENGINE
GET_ARGUMENTS = ("get_args", "parse_args", "get_arguments", "parse_arguments", "config")


def find_engine(script: Path, tree: ast.Module, follow: bool = True) -> tuple[ast.ClassDef, Path, str] | None:
    """The engine's class, its file, and the sign by which it was recognised: Paddle, or the steps.

    With `follow`, the class may also come from a module beside the script.
    """
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == ENGINE:
            methods = functions(node.body)
            if any(name.partition(".")[0] == "paddle" for name in imported(tree)) or "load_predictor" in methods:
                return node, script, "for Paddle"
            if all(step in methods for step in drivers.STEPS):
                return node, script, "with preprocess, run and postprocess"
        if follow and isinstance(node, ast.ImportFrom) and any(alias.name == ENGINE for alias in node.names):
            beside = script.parent / ((node.module or "").replace(".", "/") + ".py")
            if beside.is_file():
                return find_engine(beside, parse(beside), follow=False)
    return None


def arguments_of(script: Path, tree: ast.Module) -> tuple[parser.Argument, ...]:
    """The arguments of the parser, in the script or in the module beside it that has the parser."""
    arguments = parser.read(tree)
    if arguments:
        return arguments
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(alias.name in GET_ARGUMENTS for alias in node.names):
            beside = script.parent / ((node.module or "").replace(".", "/") + ".py")
            if beside.is_file():
                return parser.read(parse(beside))
    return ()


def choose(
    script: Path, tree: ast.Module, methods: dict[str, Function], arguments: tuple[parser.Argument, ...]
) -> dict[str, Any]:
    """The way of a request: by the engine's steps, or by the driver as a whole; with the reason."""
    driver = drivers.find(tree)
    reason = not_drivable(methods)
    if not reason and driver is not None and driver.broken:
        reason = f"{driver.name} {driver.broken}"
    if reason and driver is None:
        steps = ", ".join(f"{step}(self, x)" for step in drivers.STEPS)
        raise StartError(
            f"{reason}, and no function in it drives the engine", file=str(script),
            fix=f"give {ENGINE} {steps}, or the script an infer_main(args)",
        )  # fmt: skip
    if reason and driver is not None:
        return by_driver(script, tree, driver, methods, arguments, reason)
    return by_steps(script, tree, driver, methods, arguments)


def not_drivable(methods: dict[str, Function]) -> str:
    """Why the steps cannot be called with one argument each; empty when they can."""
    for step in drivers.STEPS:
        if step not in methods:
            return f"{ENGINE} has no {step}"
        static = any(getattr(item, "id", "") == "staticmethod" for item in methods[step].decorator_list)
        node = methods[step].args
        most = len(node.posonlyargs) + len(node.args) - (0 if static else 1)
        least = most - len(node.defaults)
        if least > 1 or (most < 1 and node.vararg is None):
            return f"{ENGINE}.{step} takes {max(least, most)} arguments"
    return ""


def by_steps(
    script: Path, tree: ast.Module, driver: drivers.Driver | None, methods: dict[str, Function],
    arguments: tuple[parser.Argument, ...],
) -> dict[str, Any]:  # fmt: skip
    """Describe a script that runs step by step: preprocess, run and postprocess of its engine for each request."""
    wanted, whole = inputs.of_engine(driver, methods["preprocess"], arguments)
    names = driver.names if driver is not None else ()
    if driver is not None and len(names) < 2:
        names = drivers.result_names(driver, tree) or names
    how = (
        f"{script.name}:{driver.node.lineno} {driver.name} passes preprocess, run and postprocess on unchanged"
        if driver is not None
        else "no function of the script drives the engine"
    )
    return {
        "entry": ENGINE,
        "shape": "engine",
        "why": f"{how}: each is called for a request",
        "driver": driver.name if driver is not None else "",
        "driver_takes": int(bool(driver and driver.arguments)),
        "inputs": [field._asdict() for field in wanted],
        "whole": whole,
        "single": _single(methods, wanted),
        "names": list(names),
    }


def _single(methods: dict[str, Function], wanted: list[inputs.Input]) -> str:
    """Why a request must take all steps before the next one begins; empty where their steps may alternate."""
    names = {field.name for field in wanted}
    if any(names & set(drivers.attributes_read(methods[step])) for step in ("run", "postprocess")):
        return "a step after preprocess reads the input from the arguments"
    stored = sorted(drivers.stored_in_engine(methods))
    return f"its steps leave self.{stored[0]} for one another" if stored else ""


def by_driver(
    script: Path, tree: ast.Module, driver: drivers.Driver, methods: dict[str, Function],
    arguments: tuple[parser.Argument, ...], reason: str,
) -> dict[str, Any]:  # fmt: skip
    """Describe a script that runs by its own driver function for each request, since its steps cannot be separated."""
    wanted = inputs.of_driver(driver, methods, arguments)
    if not wanted:
        raise StartError(
            f"none of the script's arguments looks like the input of {driver.name}",
            file=str(script),
            line=driver.node.lineno,
            fix="name one after what it is, such as --img-path, --text or --data-path",
        )
    return {
        "entry": driver.name,
        "shape": "driver",
        "why": f"{reason}: {script.name}:{driver.node.lineno} {driver.name} is called for a request, "
        "with one engine for all of them",
        "driver": driver.name,
        "driver_takes": int(bool(driver.arguments)),
        "inputs": [field._asdict() for field in wanted],
        "whole": False,
        "names": list(drivers.result_names(driver, tree)),
    }
