"""Requests made of inputs, as each dialect needs them: a file or a JSON value becomes one HTTP request.

Used by `panglot run`, `check` and `bench`, and for the curl line of `panglot inspect`. A dialect's `request.py` has

    def make_request(about: About, given: Given) -> ClientRequest

It raises StartError for an input that the package cannot take. `base.py` has the three classes, and the kinds of
bodies a ClientRequest may have: `Json` (with `Base64` for a file inside it), `Form` and `Whole`. Bodies name files and
read them late, so that the same ClientRequest is a request and a line of curl.
"""

from __future__ import annotations

from panglot import dialects
from panglot.inputs.base import About, ClientRequest, Given
from panglot.packages.package import Package
from panglot_worker.line.description import Description


def make_request(about: About, given: Given) -> ClientRequest:
    """The request that sends an input. The fallback dialect makes it where the dialect is unknown, or makes none."""
    dialect = dialects.known().get(about.dialect)
    if dialect is None or not dialect.has("request"):
        dialect = dialects.fallback()
    made: ClientRequest = dialect.load("request").make_request(about, given)
    return made


def about_package(package: Package, path: str, api: Description | None = None, field: str = "") -> About:
    """Facts about a package. `api` is the description by its ready worker, if there is one."""
    known = api if api is not None else package.options.get("api", {})
    return About(package.dialect, path, package.options, known, field)
