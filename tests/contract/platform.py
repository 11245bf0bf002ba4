"""What one row of the contract suite says: how a platform's clients ask, and what they hear."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ID = "contract-7"
"""The request id of every request of the suite."""

Order = Mapping[str, Any]
"""What a package is to do: its number, and maybe an act of `packages/acts.py`."""


class Some(str):
    """A pattern that stands in a form for every text it matches."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        # A plain text as the pattern: `re` looks for it in a cache, where comparing it would lead here again, for ever.
        return isinstance(other, str) and re.fullmatch(str(self), other, re.DOTALL) is not None


class Number(float):
    """Stands in a form for every number."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return type(other) in (int, float)


TEXT = Some(".+")
NUMBER = Number()


@dataclass(frozen=True)
class Form:
    """An answer: status, content type, and the body as JSON, or as text. Every one has the id of its request."""

    status: int
    type: str
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def fits(self, answer: httpx.Response) -> bool:
        """Whether an answer has this form; fails with the difference where it has not."""
        found = answer.text if isinstance(self.body, str) else answer.json()
        heard = (answer.status_code, answer.headers.get("content-type", ""), found)
        expected = (self.status, self.type, self.body)
        assert expected == heard, f"expected {expected}, heard {heard}"
        for name, value in {"x-request-id": ID, **self.headers}.items():
            assert value == answer.headers.get(name), f"{name}: {value} is missing in {answer.headers}"
        return True


@dataclass(frozen=True)
class Asked:
    """A request of the platform's clients."""

    path: str
    body: bytes
    type: str = "application/json"


def neutral(status: int, code: str) -> Form:
    """Panglot's own form of an error."""
    error = {"code": code, "message": TEXT, "request_id": ID}
    return Form(status, "application/json", {"error": error})


@dataclass(frozen=True)
class Platform:
    """A row: a package of the platform, its requests and answers, and the form of everything that may go wrong."""

    name: str
    """The dialect's, with _ and more where it has several rows."""
    package: str
    """A folder of `packages`."""
    ask: Callable[[Order], Asked]
    """The request for an order on the platform's first route."""
    answer: Callable[[Any, Any], Form]
    """The answer to an order, given its number and twice that."""
    unauthorized: Form
    too_large: Form
    timeout: Form
    failed: Form
    """The script raised."""
    died: Form
    """The script's process ended, twice."""
    poisonous: Form
    nan: Form
    """Twice the number is NaN."""
    unknown: Form
    """A path that does not exist."""
    wrong_method: Form
    """PUT on the first route."""
    loading: Form
    queue_full: Form
    broken: Asked | None = None
    """A request that cannot be read; None where everything can be."""
    undecodable: Form | None = None
    """The answer to that."""
    draining: Form | None = None
    """What newcomers hear on an open connection; None where they are still answered."""
    health: Mapping[str, Form] = field(default_factory=dict)
    """The platform's own pages for probes, and what they say when all is well."""
    not_ready: Mapping[str, Form] = field(default_factory=dict)
    """What those say while the package loads, and while the server stops, where that differs."""
    leaving: Mapping[str, Form] = field(default_factory=dict)
    """What they say while it stops, where that differs again."""
    other_paths: tuple[str, ...] = ()
    """Further paths that take the same requests."""
    file: str = ""
    """What of the package is served; empty: the folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    id_header: str = ""
    """The platform's own name for the header of request ids."""
    credentials: Mapping[str, str] = field(default_factory=dict)
    """What its clients sent to their gateway; it opens nothing here."""
    other_method: str = "PUT"
    """A method that its route does not take."""
    takes_any_path: bool = False
    """Whether a POST to any path of one segment reaches the script."""
    batches: bool = False
    """Whether requests that come at once share a call of the script."""
    encodes: bool = True
    """Whether the server writes what the script returns; else the script gives bytes, text or tensors."""
    tells_why: bool = False
    """Whether its answers tell what the script raised."""
    goes_on: bool = False
    """Whether its server of its own lets a call finish that nobody waits for."""
    accepted: int = 202
    """The status for a request that has become a job."""
    of_job: Callable[[Form], Form] = lambda form: form
    """The answer of a job, where it says more than that of a request."""
    stores_jobs: bool = False
    """Whether every request becomes a job, and those that wait are in the store."""
    python: Callable[[], str] | None = None
    """Makes the interpreter of its workers, where ours lacks what they import; the row then belongs to the rest."""
    outside: Path | None = None
    """The distribution the dialect comes from, where it is none of ours."""


def as_json(order: Order) -> bytes:
    return json.dumps(order).encode()
