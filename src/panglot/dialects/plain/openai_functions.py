"""Which functions of a script OpenAI's clients can call. Without imports of the web: every detection needs this."""

from __future__ import annotations

import ast

from panglot.packages.source import functions

ARGUMENTS = {"chat": "messages", "embed": "texts"}
"""The names of the functions, each with its first argument."""


def found_in(body: list[ast.stmt], methods: list[ast.stmt]) -> dict[str, int]:
    """The lines of the functions among the two that a script, or its Model, defines.

    A function of this name with another first argument is something else.
    """
    in_model = functions(methods)
    defined = {**functions(body), **in_model}
    named = {name: defined[name] for name in ARGUMENTS if name in defined}
    return {name: node.lineno for name, node in named.items() if _first(node, name in in_model) == ARGUMENTS[name]}


def _first(function: ast.FunctionDef | ast.AsyncFunctionDef, is_method: bool) -> str:
    arguments = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    static = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in function.decorator_list)
    rest = arguments[1:] if is_method and not static else arguments
    return rest[0] if rest else ""
