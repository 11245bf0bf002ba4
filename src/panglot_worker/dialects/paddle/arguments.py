"""The script's own arguments, as a run of it would parse them."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import sys
from types import ModuleType
from typing import Any, List, Optional, Tuple

from panglot_worker.errors import ScriptError
from panglot_worker.files import package_files


def parse(module: ModuleType, script: str, driver: str, function: str) -> Any:
    """The arguments that the script's driver would get. Raises ScriptError when its parser refuses them.

    The script's main block is followed up to the call of the driver; where there is none, the function that parses is
    called; where there is none either, the block is followed up to `parse_args()`.
    """
    body = _main_block(script)
    errors = io.StringIO()
    try:
        # argparse prints its reason to standard error, and then raises SystemExit.
        with contextlib.redirect_stderr(errors):
            return _obtained(module, script, body, driver, function)
    except SystemExit as end:
        lines = [line for line in errors.getvalue().splitlines() if line.strip()]
        reason = lines[-1].partition("error: ")[2] or lines[-1] if lines else "it ended with %s" % end.code
        raise ScriptError(
            "the script's parser refuses its arguments %s: %s" % (" ".join(sys.argv[1:]) or "(none)", reason),
            script,
            fix="panglot inspect shows those it has; they go after --, as in: panglot serve PATH -- --model-dir FOLDER",
        ) from None


def _obtained(module: ModuleType, script: str, body: List[ast.stmt], driver: str, function: str) -> Any:
    call = _call_of(body, driver) if driver else None
    if call is not None and call[1] is not None:
        return _followed(module, script, body[: call[0]], call[1])
    parser = getattr(module, function, None) if function else None
    if callable(parser):
        return parser()
    for at, statement in enumerate(body):
        if isinstance(statement, ast.Assign) and "parse_args" in ast.dump(statement.value):
            return _followed(module, script, body[:at], statement.value)
    return argparse.Namespace()


def _main_block(script: str) -> List[ast.stmt]:
    for node in package_files.tree(script).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and "__main__" in ast.dump(node.test):
            return node.body
    return []


def _call_of(body: List[ast.stmt], driver: str) -> Optional[Tuple[int, Optional[ast.expr]]]:
    """The position of the statement that calls the driver, and its only argument; None where it has none or several."""
    for at, statement in enumerate(body):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == driver:
                return at, node.args[0] if len(node.args) == 1 else None
    return None


def _followed(module: ModuleType, script: str, statements: List[ast.stmt], result: ast.expr) -> Any:
    """The value of an expression after statements were run in the script's own namespace."""
    exec(compile(ast.Module(statements, []), script, "exec"), module.__dict__)  # noqa: S102  the script's own code, in its worker
    return eval(compile(ast.Expression(result), script, "eval"), module.__dict__)  # noqa: S307  the script's own code, in its worker
