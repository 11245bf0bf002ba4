"""The files that pages are made of: style, scripts, templates. Read once; a tag of the content tells versions apart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.web.pages.language import Phrases

TYPES = {".css": "text/css", ".json": "application/json", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The types of files that are served, by the ending of their names. Templates of pages are not among them."""
IMPORTED = re.compile(r'^(?:import|export)\b[^"]*?"\./([a-z_]+\.js)"', re.MULTILINE | re.DOTALL)
OURS = Path(__file__).parent / "static"
STYLE = OURS / "panglot.css"
"""The one style of all pages, reports of the command line included."""


@dataclass(frozen=True)
class Asset:
    """One file. Browsers cache it, and check each time by `tag` whether it is still the same."""

    body: bytes
    media_type: str
    tag: str


class Assets:
    """All files of the pages of one server, from our folder and those of its dialect."""

    def __init__(self) -> None:
        self._folders = [OURS]
        self._known: dict[str, Asset] = {}

    def add(self, folder: Path) -> None:
        """Serve the files of a further folder; ours win over those of the same name, and dictionaries become one."""
        if folder not in self._folders:
            self._folders.append(folder)
            self._known.clear()

    def answer(self, name: str, request: Request) -> Response | None:
        """The file of this name, or that the browser has it already; None where there is no such file."""
        asset = self._find(name)
        if asset is None:
            return None
        headers = {"etag": asset.tag, "cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers=headers, media_type=asset.media_type)

    def template(self, name: str) -> Template:
        return Template((OURS / name).read_text(encoding="utf-8"))

    def phrases(self, language: str) -> Phrases:
        """The texts of all pages in a language, those of dialects included."""
        asset = self._find(f"phrases.{language}.json")
        assert asset is not None
        known: Phrases = orjson.loads(asset.body)
        return known

    def imported(self, name: str) -> list[str]:
        """A script and all that it imports, so that a browser need not find them out one after the other."""
        return list(dict.fromkeys(self._imported(name, set())))

    def _imported(self, name: str, seen: set[str]) -> Iterator[str]:
        asset = self._find(name)
        if asset is None or name in seen:
            return
        seen.add(name)
        yield name
        for further in IMPORTED.findall(asset.body.decode()):
            yield from self._imported(further, seen)

    def _find(self, name: str) -> Asset | None:
        """Read a file once. A name never leads out of the folders: it is looked up among the files in them."""
        if name not in self._known:
            media_type = TYPES.get(Path(name).suffix, "")
            files = [file for folder in self._folders for file in folder.glob("*") if file.name == name]
            if not media_type or not files:
                return None
            body = files[0].read_bytes() if media_type != "application/json" else _together(files)
            self._known[name] = Asset(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
        return self._known[name]


def _together(files: Iterable[Path]) -> bytes:
    """Dictionaries as one; the first that has a key wins."""
    known: dict[str, object] = {}
    for file in files:
        known = {**orjson.loads(file.read_bytes()), **known}
    return orjson.dumps(known)
