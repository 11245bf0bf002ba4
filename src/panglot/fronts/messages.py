"""All that the parent and a front say to each other, but for the connections themselves."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, get_args

# From the parent


@dataclass(frozen=True)
class Meet:
    """A socket to another front comes with this message; whatever was connected with it before is over."""

    sibling: int


@dataclass(frozen=True)
class Announce:
    """The server is ready: every front has loaded, or has failed to. One front says so, the first time."""

    aloud: bool


@dataclass(frozen=True)
class Reload:
    """Load the script of a model again while the old one serves on, or with "" those of all; then say `Reloaded`."""

    model: str = ""


@dataclass(frozen=True)
class Drain:
    """No further connection comes: answer what has come, and say `Drained`."""


@dataclass(frozen=True)
class Force:
    """Wait for nothing any more."""


@dataclass(frozen=True)
class End:
    """Every front has drained, or no time is left: end."""


# From a front


@dataclass(frozen=True)
class Accepts:
    """The front takes connections; its models are not loaded yet."""


@dataclass(frozen=True)
class Loaded:
    """Every model has been loaded."""


@dataclass(frozen=True)
class Failed:
    """A model could not be loaded; the fields are those of a LoadError."""

    problem: str
    file: str = ""
    line: int = 0
    fix: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class ReloadWanted:
    """A page, or a changed file, asks that all fronts load the script of a model again, or with "" those of all."""

    model: str = ""


@dataclass(frozen=True)
class Reloaded:
    """The scripts of this front are those of today, or stay those of before because the new ones failed."""


@dataclass(frozen=True)
class LinkLost:
    """The link to another front has ended. Of two fronts that live, the one with the lower index says so."""

    sibling: int


@dataclass(frozen=True)
class Stopping:
    """The front has begun to drain, with so many requests to answer."""

    unanswered: int


@dataclass(frozen=True)
class Drained:
    """All that could be answered is; so many requests were not."""

    unanswered: int


FromParent = Meet | Announce | Reload | Drain | Force | End
FromFront = Accepts | Loaded | Failed | ReloadWanted | Reloaded | LinkLost | Stopping | Drained
Message = FromParent | FromFront
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*get_args(FromParent), *get_args(FromFront))}


def encoded(message: Message) -> bytes:
    """The message as bytes. Tracebacks hold any text: what UTF-8 has no bytes for is escaped, as JSON allows."""
    text = json.dumps({"kind": type(message).__name__, **dataclasses.asdict(message)}, ensure_ascii=False)
    return text.encode(errors="backslashreplace")


def decoded(data: bytes) -> Message:
    """The message that `encoded` made these bytes of. Raises ValueError."""
    try:
        fields = json.loads(data)
        message: Message = KINDS[fields.pop("kind")](**fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no message between parent and front: {data[:80]!r}") from error
    return message
