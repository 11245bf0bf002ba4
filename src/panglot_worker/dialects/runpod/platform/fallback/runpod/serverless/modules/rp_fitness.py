"""Checks that a script has made before it takes jobs."""

from __future__ import annotations

from typing import Any, Callable, List, TypeVar

Check = TypeVar("Check", bound=Callable[[], Any])

_fitness_checks: List[Callable[[], Any]] = []  # Of the script's process, as in the original; the dialect reads it.


def register_fitness_check(func: Check) -> Check:
    """Have a function called once before the first job; the worker does not start where it raises."""
    _fitness_checks.append(func)
    return func


def clear_fitness_checks() -> None:
    """Forget all checks."""
    _fitness_checks.clear()
