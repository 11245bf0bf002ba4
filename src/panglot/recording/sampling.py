"""Which exchanges are recorded."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SamplingRules:
    """The rules of one recording. All of them must hold."""

    every: int = 1
    """One of so many exchanges is recorded, among the exchanges that the other rules admit."""
    per_second: float = 0.0
    """At most so many in a second; 0: any number."""
    only_failures: bool = False
    """Whether exchanges with answers below 400 are left out."""
    paths: tuple[str, ...] = ()
    """Patterns of paths, such as /v1/*; none: all paths."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names and patterns of values that the request must have."""
    not_got: tuple[str, ...] = ()
    """Patterns of paths whose GET and HEAD requests are left out."""


def header_rule(text: str) -> tuple[str, str]:
    """`NAME` or `NAME: PATTERN` as a rule."""
    name, _, pattern = text.partition(":")
    return name.strip().lower(), pattern.strip() or "*"


class Sampler:
    """Applies the rules. Used by one thread."""

    def __init__(self, rules: SamplingRules, turn: int = 0) -> None:
        """`turn` exchanges count as seen, so that several samplers do not all begin with the same turn."""
        self.rules = rules
        self._turn = turn - 1
        self._allowance = max(1.0, rules.per_second)
        self._at = 0.0

    def wants(self, target: str, headers: Sequence[tuple[str, str]], now: float, method: str = "POST") -> bool:
        """Whether to record the exchange of a request whose head has come. With `only_failures`, True means perhaps."""
        rules = self.rules
        path = target.partition("?")[0]
        if rules.paths and not _matches_any(path, rules.paths):
            return False
        if rules.not_got and method in ("GET", "HEAD") and _matches_any(path, rules.not_got):
            return False
        if rules.headers and not all(_has(headers, name, pattern) for name, pattern in rules.headers):
            return False
        # With `only_failures` the answer decides, and only failures take turns: see `wants_answer`.
        return rules.only_failures or self._takes_turn(now)

    def wants_answer(self, status: int, failed: bool, now: float) -> bool:
        """Whether to record the exchange, now that it has ended."""
        if not self.rules.only_failures:
            return True
        return (failed or status >= 400) and self._takes_turn(now)

    def _takes_turn(self, now: float) -> bool:
        self._turn += 1
        if self._turn % self.rules.every:
            return False
        rate = self.rules.per_second
        if not rate:
            return True
        self._allowance = min(max(1.0, rate), self._allowance + (now - self._at) * rate)
        self._at = now
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True


def _matches_any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _has(headers: Sequence[tuple[str, str]], name: str, pattern: str) -> bool:
    return any(key.lower() == name and fnmatch.fnmatchcase(value, pattern) for key, value in headers)
