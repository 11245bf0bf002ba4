"""The names that scripts import: `from panglot import File, ClientError, request, route`.

The module `panglot` of the running dialect, and that of an installed Panglot, both give these.
"""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, TypeVar, Union

from panglot_worker.bodies.codec import File
from panglot_worker.bodies.response import Response
from panglot_worker.errors import ClientError, Interrupted
from panglot_worker.scripts.current import RequestInfo, request, requests
from panglot_worker.scripts.reporting import progress

__all__ = ["ClientError", "File", "Interrupted", "RequestInfo", "Response", "progress", "request", "requests", "route"]

MARK = "_panglot_routes"
Marked = TypeVar("Marked", bound=Callable[..., Any])


def route(
    path: str, *, batch: Union[bool, int] = False, methods: Union[str, Sequence[str]] = "POST"
) -> Callable[[Marked], Marked]:
    """Give a function of the script a route of its own. The function itself stays as it is.

    `{name}` in the path is a parameter of the function; its other parameters come from the query and the body.
    `methods` are those it answers: GET, POST, PUT, PATCH or DELETE, or a list of these. With `batch` it gets a list of
    requests and returns a list of answers: of at most that many, or of as many as the setting `max_batch` says where
    `batch` is True.
    """
    if not isinstance(path, str):
        raise TypeError('a route needs its path: @route("/path")')
    if not all(isinstance(method, str) for method in methods):
        raise TypeError('methods are words: @route("/path", methods=["GET"])')

    def mark(function: Marked) -> Marked:
        setattr(function, MARK, [*routes_of(function), path])
        return function

    return mark


def routes_of(function: Any) -> List[str]:
    """The paths that `route` gave to a function; none for anything else."""
    marks = getattr(function, MARK, ()) if callable(function) else ()
    return list(marks) if isinstance(marks, list) else []
