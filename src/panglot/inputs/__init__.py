"""How each dialect wants an input: a file or a JSON value becomes one HTTP request.

Used by `panglot run`, `check` and `bench`, and for the curl line of `panglot inspect`. A dialect's `ask.py` has

    def ask(about: About, given: Given) -> Ask

It raises StartError for an input that the package cannot take. `base.py` has the three classes, and the kinds of
bodies an Ask may have: `Json` (with `Base64` for a file inside it), `Form` and `Whole`. Bodies name files and read
them late, so that the same Ask is a request and a line of curl.
"""

from __future__ import annotations

from panglot import dialects
from panglot.inputs.base import About, Ask, Given
from panglot.packages.package import Package


def ask(about: About, given: Given) -> Ask:
    """The request that sends an input. Where the dialect is unknown, or has no `ask`, the fallback dialect makes it."""
    dialect = dialects.known().get(about.dialect)
    if dialect is None or not dialect.has("ask"):
        dialect = dialects.fallback()
    made: Ask = dialect.load("ask").ask(about, given)
    return made


def about_package(package: Package, path: str, api: dict[str, object] | None = None, field: str = "") -> About:
    """What is known about a package; `api` is what its ready worker says, if there is one."""
    known = api if api is not None else package.options.get("api", {})
    return About(package.dialect, path, package.options, known, field)
