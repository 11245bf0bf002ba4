"""The file of keys: who has one, what each may reach, within which limits. Of secrets it holds the digests alone."""

from __future__ import annotations

import datetime
import hashlib
import math
import re
import secrets
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.settings import suggestion

TABLE = "key"
INFER, JOBS, METRICS, PAGES, ADMIN = "infer", "jobs", "metrics", "pages", "admin"
RIGHTS = (INFER, JOBS, METRICS, PAGES, ADMIN)
"""The rights that a key may have, as the file calls them."""
PREFIX = "pgk-"
SECRET = re.compile(rb"pgk-[A-Za-z0-9_-]{43}")
"""What a secret looks like: 256 random bits behind a prefix, by which a search for leaked secrets finds it."""
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
HEADING = re.compile(r"^[ \t]*\[\[[ \t]*key[ \t]*\]\]", re.MULTILINE)
LARGEST = 16 << 20
MOST_RATE, MOST_COUNT = 1e9, 10**9


@dataclass(frozen=True)
class Key:
    """One entry of the file."""

    name: str
    digest: bytes
    """The SHA-256 of its secret."""
    may: frozenset[str] = frozenset((INFER, JOBS))
    models: frozenset[str] | None = None
    """The models that it may use; None: all."""
    routes: tuple[str, ...] | None = None
    """The paths of scripts that it may request, each whole or with a star at its end; None: all."""
    rate: float = math.inf
    """Requests per second."""
    burst: int = 0
    """Requests that may come at one moment after a pause; 0 where there is no rate."""
    at_once: float = math.inf
    """Requests without an answer yet."""
    expires: float = math.inf
    """When it ends, in seconds since 1970."""

    def reaches_model(self, name: str) -> bool:
        return self.models is None or name in self.models

    def reaches_route(self, path: str) -> bool:
        """Whether a path of a script is one of its routes."""
        if self.routes is None:
            return True
        return any(path.startswith(route[:-1]) if route.endswith("*") else path == route for route in self.routes)


class BadEntry(Exception):
    """What is wrong with one entry of the file, and how to mend it."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def read(file: str) -> list[Key]:
    """The keys of a file. Raises StartError for a file that cannot be used, with the line of the mistake."""
    try:
        with Path(file).open("rb") as opened:
            raw = opened.read(LARGEST + 1)
        text = raw.decode()
    except UnicodeDecodeError:
        raise StartError("the file of keys is no text in UTF-8", file=file) from None
    except (OSError, ValueError) as error:
        raise StartError(f"the file of keys cannot be read: {error}", file=file) from None
    if len(raw) > LARGEST:
        raise StartError(f"the file of keys has more than {LARGEST >> 20} MiB", file=file)
    return parse(text, file)


def parse(text: str, file: str = "") -> list[Key]:
    """The keys that a text declares. Raises StartError."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        at = re.search(r"at line (\d+)", str(error))
        raise StartError(f"this is no TOML: {error}", file=file, line=int(at[1]) if at else 0) from None
    unknown = [name for name in content if name != TABLE]
    entries = content.get(TABLE, [])
    if unknown or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = f"'{unknown[0][:64]}' is not a table of a key file" if unknown else "'key' is not a list of tables"
        raise StartError(what, file=file, fix="begin each key with [[key]]; `panglot key new NAME` writes one")
    keys: dict[str, Key] = {}
    digests: dict[bytes, str] = {}
    for index, entry in enumerate(entries):
        try:
            key = _key(entry)
            if key.name in keys:
                raise BadEntry("there are two keys of this name", "give one of them another name")
            if key.digest in digests:
                raise BadEntry(f"it has the secret of key '{digests[key.digest]}'", "`panglot key new` makes another")
        except BadEntry as bad:
            name = entry.get("name")
            whose = f"key '{name}'" if isinstance(name, str) and NAME.fullmatch(name) else f"key number {index + 1}"
            line = _line(text, index, len(entries))
            raise StartError(f"{whose}: {bad.problem}", file=file, line=line, fix=bad.fix) from None
        keys[key.name], digests[key.digest] = key, key.name
    return list(keys.values())


def _line(text: str, index: int, count: int) -> int:
    """The line at which an entry begins; 0 where the text does not tell."""
    headings = [heading.start() for heading in HEADING.finditer(text)]
    # Text in quotes may look like a heading: then no line is better than a wrong one.
    return text.count("\n", 0, headings[index]) + 1 if len(headings) == count else 0


def _key(entry: Mapping[str, Any]) -> Key:
    """The key that an entry declares. Raises BadEntry."""
    for name in entry:
        if name not in READERS:
            raise BadEntry(f"'{name[:64]}' is not an entry of a key", suggestion(name, READERS) or ", ".join(READERS))
    for name in ("name", "secret"):
        if name not in entry:
            raise BadEntry(f"it has no {name}", "`panglot key new NAME` writes a whole entry")
    known = {name: READERS[name](value) for name, value in entry.items()}
    # The file calls it the secret, although it has only the digest of one.
    known["digest"] = known.pop("secret")
    if "burst" in known and "rate" not in known:
        raise BadEntry("a burst means nothing without a rate", "rate = 10")
    if "rate" in known:
        known.setdefault("burst", max(1, math.ceil(known["rate"])))
    if (known.get("models") is not None or known.get("routes") is not None) and not {INFER, JOBS} & known.get(
        "may", {INFER}
    ):
        raise BadEntry("its models and routes are for nothing: it may not infer", 'add "infer" to may')
    return Key(**known)


# What each entry may hold


def _name(value: Any) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadEntry("a name is 1 to 64 letters, digits or . _ -, and begins with no sign", 'name = "team-a"')
    return value


def _digest(value: Any) -> bytes:
    fits = DIGEST.fullmatch(value) if isinstance(value, str) else None
    if fits is None:
        plain = isinstance(value, str) and SECRET.fullmatch(value.encode("utf-8", "replace")) is not None
        what = "this is the secret itself, which no file should hold" if plain else "the secret is no digest"
        raise BadEntry(what, 'secret = "sha256:..." as `panglot key new` prints it')
    return bytes.fromhex(fits[1])


def _texts(value: Any, what: str, example: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise BadEntry(f"{what} is a list of texts, and has at least one", example)
    return value


def _may(value: Any) -> frozenset[str]:
    words = _texts(value, "may", 'may = ["infer"]')
    for word in words:
        if word not in RIGHTS:
            raise BadEntry(f"it may not be allowed '{word[:64]}'", suggestion(word, RIGHTS) or ", ".join(RIGHTS))
    return frozenset(words)


def _models(value: Any) -> frozenset[str]:
    return frozenset(_texts(value, "models", 'models = ["resnet"]'))


def _routes(value: Any) -> tuple[str, ...]:
    words = _texts(value, "routes", 'routes = ["/predict"]')
    for word in words:
        if not word.startswith("/") or "*" in word[:-1]:
            raise BadEntry(f"the route '{word[:64]}' is no path", 'routes = ["/predict", "/v2/*"]')
    return tuple(words)


def _number(name: str, most: float, example: str, *, whole: bool) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= most:
            what = "a whole number" if whole else "a number"
            raise BadEntry(f"{name} is {what} above 0", example)
        return value

    return read


def _expires(value: Any) -> float:
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        raise BadEntry("expires is a moment with its time zone, without quotes", "expires = 2027-01-31T00:00:00Z")
    try:
        return value.timestamp()
    except (OverflowError, ValueError, OSError):
        raise BadEntry("expires is no moment that a clock shows", "expires = 2027-01-31T00:00:00Z") from None


READERS: Mapping[str, Callable[[Any], Any]] = {
    "name": _name,
    "secret": _digest,
    "may": _may,
    "models": _models,
    "routes": _routes,
    "rate": _number("rate", MOST_RATE, "rate = 10", whole=False),
    "burst": _number("burst", MOST_COUNT, "burst = 20", whole=True),
    "at_once": _number("at_once", MOST_COUNT, "at_once = 4", whole=True),
    "expires": _expires,
}


def written(name: str, secret: str, more: Iterable[str] = ()) -> str:
    """The entry of a key as the file has it; `more` are its further lines."""
    lines = (f"[[{TABLE}]]", f'name = "{name}"', f'secret = "sha256:{digest_of(secret.encode()).hex()}"', *more)
    return "\n".join(lines) + "\n"
