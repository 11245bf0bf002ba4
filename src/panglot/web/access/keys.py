"""The keys of a server while it runs: how a request's key is found, what it opens, whether it is within its limits.

All of it runs on the event loop, so nothing is locked. A secret is looked up by its digest: how long that takes
tells nothing about secrets, and is the same for ten keys as for ten thousand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from panglot.engine.call import Fault
from panglot.metrics.counters import heading, wording
from panglot.terminal.text import counted
from panglot.web.access import key_file
from panglot.web.access.key_file import Key, digest_of
from panglot.web.contract import ADMIN, CONTROL, INFER, JOBS, METRICS

RIGHT_FOR = {
    INFER: key_file.INFER, JOBS: key_file.JOBS, METRICS: key_file.METRICS, ADMIN: key_file.PAGES,
    CONTROL: key_file.ADMIN,
}  # fmt: skip
"""What a key must be allowed, by the access that a route declares."""
MOST_SHOWN = 100
"""Keys with a label of their own in the metrics, and a line on the status page; the rest are counted together."""
OTHERS = "(others)"
MOST_LINES = 1024
"""How many lines about its limits are kept of a key: most requests find the same limits as one before them."""
OUTCOMES = ("admitted", "rate", "at_once", "forbidden")
NO_TOKEN = Fault(401, "unauthorized", "this server needs a token: Authorization: Bearer ...")
monotonic = time.monotonic
ceil = math.ceil
inf = math.inf


class Wanted(NamedTuple):
    """What a request wants to reach."""

    access: str
    path: str
    model: str = ""
    """The model's name, as far as it is known before the body is read; empty: none, or not yet."""


class KeyHolder:
    """A client by the name of its key: what it has open, and what it was given and refused.

    It stays the same when the file is read again, so that a changed file forgives no rate and loses no count.
    """

    __slots__ = (
        "_lines", "admitted", "at_once", "filled", "forbidden", "key", "name", "open", "policy", "rate", "tokens",
    )  # fmt: skip

    def __init__(self, key: Key) -> None:
        self.name = key.name
        self.key: Key | None = key
        """None once it is revoked."""
        self.open = 0
        """Requests that have no answer yet."""
        self.tokens = float(key.burst)
        self.filled = monotonic()
        """Requests that may come at once now, as counted at that moment; each passing second adds the rate."""
        self.admitted = self.rate = self.at_once = self.forbidden = 0
        """Requests by what became of them."""
        self.policy = policy_of(key)
        """The line of an answer that tells the limits; empty where the key has none, and nothing is told."""
        self._lines: dict[tuple[int, int, int], bytes] = {}
        """Lines about the limits as they were written, by what is left."""

    def change(self, key: Key) -> None:
        """Have other rights and limits from now on."""
        # By the former rate, which the new key replaces below.
        if self.key is not None and key.rate != self.key.rate:
            self._refill(monotonic())
        if self.key is not None and not self.key.burst:
            # It had no rate: `tokens` has only gone down.
            self.tokens = float(key.burst)
        self.key, self.tokens = key, min(self.tokens, key.burst) if key.burst else 0.0
        self.policy = policy_of(key)
        self._lines.clear()

    def readmit(self, key: Key | None, now: float) -> bytes | None:
        """Count in, until `release`, a request whose head came before with this very key: the lines about its limits.

        None where the key has changed, has expired or is at its limits: then nothing is counted, and the whole head
        has to be looked at.
        """
        # Every request of a client that reuses its connection comes this way. So what `_refill` and `take` do is done
        # here once more, without calling them.
        if key is None or self.key is not key:
            return None
        count, tokens, burst = self.open, self.tokens, key.burst
        if count >= key.at_once or (key.expires != inf and time.time() >= key.expires):
            return None
        if burst:
            tokens += (now - self.filled) * key.rate
            if tokens > burst:
                tokens = burst
            self.tokens, self.filled = tokens, now
            if tokens < 1:
                return None
        self.open = count = count + 1
        self.tokens = tokens = tokens - 1
        self.admitted += 1
        return self.lines_of(key, tokens, count) if self.policy else b""

    def take(self) -> None:
        """Count a request in, until `release`."""
        self.open += 1
        self.admitted += 1
        self.tokens -= 1

    def take_short(self) -> None:
        """Count a request in that is answered at once."""
        self.admitted += 1
        self.tokens -= 1

    def release(self) -> None:
        """Count a request out: it has its answer, or its client has gone."""
        self.open -= 1

    @property
    def open_here(self) -> int:
        """Those of `open` that this process has; with several fronts, other processes have the rest."""
        return self.open

    def refusal(self, wanted: Wanted) -> Fault | None:
        """Why a request of this key is not admitted now; None where it may be counted in."""
        key = self.key
        if key is None:
            return NO_TOKEN
        if time.time() >= key.expires:
            return NO_TOKEN._replace(message=f"the key '{self.name}' has expired")
        fault = self.forbids(wanted)
        if fault is not None:
            return fault
        if self.open >= key.at_once:
            self.at_once += 1
            message = f"the key '{self.name}' may have {counted(key.at_once, 'request')} at once, and has {self.open}"
            return Fault(429, "too_many_at_once", message, 1)
        if key.burst:
            self._refill(monotonic())
            if self.tokens < 1:
                self.rate += 1
                wait = max(1, math.ceil((1 - self.tokens) / key.rate))
                message = f"the key '{self.name}' may make {counted(key.rate, 'request')} per second"
                return Fault(429, "rate_limited", message, wait)
        return None

    def forbids(self, wanted: Wanted) -> Fault | None:
        """Why this key may not reach something, whatever its limits; None where it may."""
        key = self.key
        if key is None:
            return NO_TOKEN
        right = RIGHT_FOR[wanted.access]
        if right not in key.may:
            return self._forbidden(f"is not allowed '{right}'")
        if wanted.access == INFER and not key.reaches_route(wanted.path):
            return self._forbidden(f"may not use {wanted.path[:200]}")
        return self.forbids_model(wanted.model) if wanted.model else None

    def forbids_model(self, name: str) -> Fault | None:
        """Why this key may not reach a model; None where it may."""
        if self.key is None:
            return NO_TOKEN
        return None if self.key.reaches_model(name) else self._forbidden(f"may not use model '{name[:200]}'")

    def _forbidden(self, what: str) -> Fault:
        self.forbidden += 1
        return Fault(403, "forbidden", f"the key '{self.name}' {what}")

    def limits(self) -> dict[bytes, bytes]:
        """The headers that tell a client its limits, as draft-ietf-httpapi-ratelimit-headers-10 has them."""
        lines = (line.partition(b": ") for line in self.limit_lines().split(b"\r\n") if line)
        return {name: value for name, _, value in lines}

    def limit_lines(self) -> bytes:
        """These headers as lines of an answer of HTTP/1.1."""
        key = self.key
        return self.lines_of(key, self.tokens, self.open) if key is not None and self.policy else b""

    def lines_of(self, key: Key, left: float, count: int) -> bytes:
        """These lines for a key with limits, when so much of its rate is left and so many requests are open."""
        # Without a rate, what is left of it means nothing, and falls with each request.
        left = left if key.burst and left > 0 else 0.0
        state = (int(left), ceil((key.burst - left) / key.rate), count)
        lines = self._lines.get(state)
        if lines is None:
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            self._lines[state] = lines = self._written(key, *state)
        return lines

    def _written(self, key: Key, left: int, until_full: int, count: int) -> bytes:
        """These lines, written anew."""
        further = max(key.at_once - count, 0)
        if not key.burst:
            return b'%bratelimit: "at-once";r=%d\r\n' % (self.policy, further)
        rate = b'%bratelimit: "rate";r=%d;t=%d' % (self.policy, left, until_full)
        return rate + (b"\r\n" if further == inf else b', "at-once";r=%d\r\n' % further)

    def _refill(self, now: float) -> None:
        key = self.key
        if key is not None and key.burst:
            self.tokens = min(key.burst, self.tokens + (now - self.filled) * key.rate)
        self.filled = now

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in OUTCOMES}


def policy_of(key: Key) -> bytes:
    """The line that tells the limits of a key, whatever is left of them; empty where it has none."""
    policies = []
    if key.burst:
        policies.append(b'"rate";q=%d;w=%d' % (key.burst, max(1, math.ceil(key.burst / key.rate))))
    if key.at_once < math.inf:
        policies.append(b'"at-once";q=%d;qu="concurrent-requests"' % key.at_once)
    return b"ratelimit-policy: %b\r\n" % b", ".join(policies) if policies else b""


class KeyChanges(NamedTuple):
    """How many keys there are, and how many of them are new, changed or gone."""

    total: int
    added: int
    changed: int
    removed: int


class Keys:
    """All keys in force."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._by_digest: dict[bytes, KeyHolder] = {}
        self._by_name: dict[str, KeyHolder] = {}
        self._record: Callable[[Key], KeyHolder] = KeyHolder
        self.replace(keys)

    def record_by(self, record: Callable[[Key], KeyHolder]) -> None:
        """Have other records of the keys from now on, made by `record`. To be called before the first request."""
        keys = [holder.key for holder in self if holder.key is not None]
        self._record, self._by_name, self._by_digest = record, {}, {}
        self.replace(keys)

    def __iter__(self) -> Iterator[KeyHolder]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def replace(self, keys: Iterable[Key]) -> KeyChanges:
        """Have these keys in force and no others. Connections that remember another key look again by themselves."""
        former, added, changed = self._by_name, 0, 0
        by_name: dict[str, KeyHolder] = {}
        for key in keys:
            holder = former.get(key.name)
            if holder is None:
                holder, added = self._record(key), added + 1
            elif holder.key != key:
                holder.change(key)
                changed += 1
            by_name[key.name] = holder
        gone = [holder for name, holder in former.items() if name not in by_name]
        for holder in gone:
            holder.key = None
        self._by_name = by_name
        self._by_digest = {holder.key.digest: holder for holder in by_name.values() if holder.key is not None}
        return KeyChanges(len(by_name), added, changed, len(gone))

    def find(self, secret: bytes) -> KeyHolder | None:
        """The holder of the key with this secret; None where there is none."""
        return self._by_digest.get(digest_of(secret)) if secret else None

    def named(self, name: str) -> KeyHolder | None:
        return self._by_name.get(name)

    # What is shown

    def shown(self) -> list[dict[str, Any]]:
        """The first keys of the file, for the status page."""
        return [_shown(holder) for holder, _ in zip(self, range(MOST_SHOWN), strict=False)]

    def metrics(self) -> str:
        """What each key was given and refused, in the Prometheus text form. Only so many keys have their own label."""
        counted: dict[str, dict[str, int]] = {}
        running: dict[str, int] = {}
        for index, holder in enumerate(self):
            label = holder.name if index < MOST_SHOWN else OTHERS
            sums = counted.setdefault(label, dict.fromkeys(OUTCOMES, 0))
            for outcome, count in holder.counts().items():
                sums[outcome] += count
            running[label] = running.get(label, 0) + holder.open_here
        name = "panglot_key_requests_total"
        lines = heading(name, "requests by key, and what became of them", "counter")
        lines += [
            f"{name}{wording({'key': label, 'outcome': outcome})} {count}"
            for label, sums in counted.items()
            for outcome, count in sums.items()
        ]
        name = "panglot_key_open_requests"
        lines += heading(name, "requests of a key that have no answer yet", "gauge")
        lines += [f"{name}{wording({'key': label})} {count}" for label, count in running.items()]
        return "\n".join(lines) + "\n"


def _shown(holder: KeyHolder) -> dict[str, Any]:
    key = holder.key
    assert key is not None
    limits = {
        "rate": key.rate if key.burst else None,
        "burst": key.burst or None,
        "at_once": None if key.at_once == math.inf else key.at_once,
        "expires": None if key.expires == math.inf else key.expires,
    }
    reach = {
        "may": sorted(key.may),
        "models": sorted(key.models) if key.models is not None else None,
        "routes": list(key.routes) if key.routes is not None else None,
    }
    counts = {"admitted": holder.admitted, "forbidden": holder.forbidden}
    over = {"rate_refused": holder.rate, "at_once_refused": holder.at_once}
    return {"name": holder.name, **reach, **limits, "open": holder.open_here, **counts, **over}
