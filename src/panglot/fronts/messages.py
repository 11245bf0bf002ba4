"""The messages between the parent and a front. Connections travel without a message."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, get_args

# From the parent


@dataclass(frozen=True)
class Meet:
    """A socket to another front comes with this message. It replaces an earlier socket to a front of this index."""

    sibling: int


@dataclass(frozen=True)
class Announce:
    """The server is ready: every front has loaded, or has failed to. One front says so, the first time."""

    aloud: bool


@dataclass(frozen=True)
class Reload:
    """Load the script of a model again while the old one serves on; "": of all models. Then say `Reloaded`."""

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


@dataclass(frozen=True)
class StageModel:
    """Load the versions that the folder has of a name now, without serving them yet; then say `Staged`."""

    change: int
    name: str
    slots: list[int]
    """The slots of its versions, in their order."""


@dataclass(frozen=True)
class Switch:
    """Every front has staged: serve the loaded versions of a name instead of the old ones; then say `Switched`."""

    change: int
    slots: dict[str, int]
    """By version: the slots of the models that are served from now on."""


@dataclass(frozen=True)
class Drop:
    """A front could not load: forget the loaded versions, say `Gone` for their slots, and serve the old ones on."""

    change: int
    name: str
    slots: list[int]
    why: str


@dataclass(frozen=True)
class Unload:
    """Serve no version of a name any more; then say `Switched`."""

    change: int
    name: str


@dataclass(frozen=True)
class Scale:
    """Have this front's share of so many workers of a model."""

    name: str
    version: str
    least: int
    most: int


@dataclass(frozen=True)
class Prefer:
    """Have a version of a model answer where a request names none."""

    name: str
    version: str


@dataclass(frozen=True)
class Sleep:
    """Have no workers of a model; its calls wait until it wakes."""

    slot: int
    order: int
    """The number of this order. The front writes it to the board once it has carried the order out."""
    reason: str
    """Why the model sleeps, in the one front that counts the sleep; else empty."""


@dataclass(frozen=True)
class Wake:
    """Start the workers of a model."""

    slot: int
    order: int
    is_counted: bool
    """Whether this front counts the waking."""


@dataclass(frozen=True)
class Loading:
    """The names that are being loaded now."""

    names: list[str]


@dataclass(frozen=True)
class Changed:
    """A change that this front asked for is done in every front; or in none, and the fields say why."""

    number: int
    problem: str = ""
    file: str = ""
    line: int = 0
    fix: str = ""


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
    """A page, or a changed file, asks that all fronts load the script of a model again; "": of all models."""

    model: str = ""


@dataclass(frozen=True)
class Reloaded:
    """The front has reloaded its scripts, or goes on with the old scripts because the new ones failed."""


@dataclass(frozen=True)
class ChangeWanted:
    """A client asks that a model be loaded from the folder, or unloaded; `Changed` with the same number answers."""

    number: int
    name: str
    load: bool


@dataclass(frozen=True)
class ScaleWanted:
    """A client asks that all fronts together have so many workers of a model."""

    name: str
    version: str
    least: int
    most: int


@dataclass(frozen=True)
class PreferWanted:
    """A client asks that all fronts prefer a version of a model."""

    name: str
    version: str


@dataclass(frozen=True)
class Staged:
    """These versions are loaded, and not served yet; or none is, and the fields of a StartError say why."""

    change: int
    versions: list[str]
    problem: str = ""
    file: str = ""
    line: int = 0
    fix: str = ""


@dataclass(frozen=True)
class Switched:
    """The front serves the versions that it was told to serve."""

    change: int


@dataclass(frozen=True)
class MaySleep:
    """The front has workers of a model that may sleep. Fields without a text are settings of the model."""

    slot: int
    name: str
    fronts: int
    """How many fronts have workers of it."""
    sleep_after: float
    timeout: float
    memory: int
    gpu_memory: int


@dataclass(frozen=True)
class BeginsAsleep:
    """The front has no workers of a model: an earlier process had loaded it, in so many seconds, with this memory."""

    slot: int
    seconds: float
    memory: int | None
    gpu_memory: int | None


@dataclass(frozen=True)
class WakeWanted:
    """A call has come for a model that sleeps; or the front is to load it for the first time."""

    slot: int


@dataclass(frozen=True)
class WaitsForMemory:
    """A call was refused because other models use the memory that its model needs."""

    slot: int


@dataclass(frozen=True)
class SleepsNoMore:
    """The front no longer has a model that may sleep."""

    slot: int


@dataclass(frozen=True)
class Gone:
    """The model of a slot has answered its last request, and has ended."""

    slot: int


@dataclass(frozen=True)
class Dropped:
    """A model could not be loaded at the start; the other models are served without it."""

    name: str
    version: str
    why: str


@dataclass(frozen=True)
class LinkLost:
    """The link to another front has ended. Of the two fronts, only the one with the lower index sends this."""

    sibling: int


@dataclass(frozen=True)
class Stopping:
    """The front has begun to drain, with so many requests to answer."""

    unanswered: int


@dataclass(frozen=True)
class Drained:
    """The front has answered all requests that it could; so many are without an answer."""

    unanswered: int


FromParent = (
    Meet | Announce | Reload | StageModel | Switch | Drop | Unload | Scale | Prefer | Sleep | Wake | Loading | Changed
    | Drain | Force | End
)  # fmt: skip
FromFront = (
    Accepts | Loaded | Failed | Dropped | ReloadWanted | Reloaded | ChangeWanted | ScaleWanted | PreferWanted
    | Staged | Switched
    | Gone | MaySleep | BeginsAsleep | WakeWanted | WaitsForMemory | SleepsNoMore | LinkLost | Stopping | Drained
)  # fmt: skip
Message = FromParent | FromFront
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*get_args(FromParent), *get_args(FromFront))}


def encoded(message: Message) -> bytes:
    """The message as bytes. A traceback may have characters that UTF-8 cannot hold: they are escaped as in JSON."""
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
