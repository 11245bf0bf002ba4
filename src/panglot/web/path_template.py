"""Paths with free segments: `/predictions/{model}`, `/v1/models/{model}:predict`, `/files/{rest...}`."""

from __future__ import annotations

import functools
import itertools
import re

FREE = re.compile(r"\{([A-Za-z_]\w*)(\.\.\.)?\}")


class PathTemplate:
    """A path in which `{name}` stands for a segment, or for a part of one, of at least one character.

    `{name...}`, which only the end of a path may have, stands for the rest of the path with its slashes; the rest may
    be empty. Every other character stands for itself. Raises ValueError for a template that breaks these rules.
    """

    def __init__(self, text: str, fold_case: bool = False) -> None:
        self.text = text
        free = list(FREE.finditer(text))
        self.names = tuple(match[1] for match in free)
        """The free segments in their order."""
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{text}: two free segments have one name")
        if any(match[2] and match.end() != len(text) for match in free):
            raise ValueError(f"{text}: only the end of a path may be free with its slashes")
        if any(match.end() == other.start() for match, other in itertools.pairwise(free)):
            raise ValueError(f"{text}: between two free segments something must be fixed")
        first = free[0].start() if free else len(text)
        self.fixed = (first, len(FREE.sub("", text)))
        """How many characters are fixed, before the first free segment and in all: of two that fit, more wins."""
        pattern, end = "", 0
        for match in free:
            part = ".*" if match[2] else "[^/]+"
            pattern, end = f"{pattern}{re.escape(text[end : match.start()])}(?P<{match[1]}>{part})", match.end()
        flags = re.DOTALL | (re.IGNORECASE if fold_case else 0)
        self._pattern = re.compile((pattern + re.escape(text[end:])).encode(), flags)

    def match(self, path: bytes) -> dict[str, bytes] | None:
        """The free segments of a path, by name; None for a path that does not fit."""
        match = self._pattern.fullmatch(path)
        return match.groupdict() if match is not None else None

    def fill(self, **values: str) -> str:
        """A path of this form. Segments that are not given are `any`."""
        return FREE.sub(lambda free: values.get(free[1], "any"), self.text)

    @property
    def plain(self) -> str:
        """The template as OpenAPI writes it."""
        return FREE.sub(r"{\1}", self.text)


@functools.lru_cache(maxsize=1024)
def template(text: str, fold_case: bool = False) -> PathTemplate:
    """The template of a text, made once."""
    return PathTemplate(text, fold_case)


def is_template(path: str) -> bool:
    """Whether a path has free segments."""
    return FREE.search(path) is not None
