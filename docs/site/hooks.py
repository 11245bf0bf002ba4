"""What the site needs beyond its pages: files of the repository's root as pages, and links that lead out of docs/.

mkdocs knows the files below docs/ only. A link to anything else of the repository works where the pages are read as
files; on the site its text stays, with the path behind it. One that leads nowhere fails the build.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
TO_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Files of the root that are pages too, and where."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
SHIM = re.compile(r'"https://unpkg\.com/iframe-worker/shim"')
"""What the theme would load so that search works from files; ours is search.js."""
ELSEWHERE = re.compile(r"[a-z]+:|#")
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)

log = logging.getLogger("mkdocs.plugins.repository")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie in the root."""
    for source, name in TO_PAGES.items():
        files.append(File.generated(config, name, content=relinked((ROOT / source).read_text(), source)))
    files.append(File.generated(config, "assets/search.js", content=(ROOT / "docs/site/search.js").read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    name = page.file.src_uri
    return markdown if name in TO_PAGES.values() else relinked(markdown, f"docs/{name}")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    return SHIM.sub(f'"{"../" * page.url.count("/")}assets/search.js"', output)


def on_post_template(output_content: str, **_: Any) -> str:
    return SHIM.sub('"assets/search.js"', output_content)


def relinked(markdown: str, source: str) -> str:
    """The text of a file of the repository, with its links as they are on the site."""
    pieces = FENCE.split(markdown)
    return "".join(
        piece if piece.lstrip().startswith("```") else LINK.sub(lambda link: _on_the_site(link, source), piece)
        for piece in pieces
    )


def _on_the_site(link: re.Match[str], source: str) -> str:
    picture, text, address = link.groups()
    if ELSEWHERE.match(address):
        return link[0]
    path, _, anchor = address.partition("#")
    wanted = os.path.normpath(os.path.join(os.path.dirname(source), path))
    if not (ROOT / wanted).exists():
        log.warning("%s links to %s, which is not there", source, address)
        return link[0]
    seen_from = "docs" if source in TO_PAGES else os.path.dirname(source)
    place = f"docs/{TO_PAGES[wanted]}" if wanted in TO_PAGES else wanted
    if not place.startswith("docs/"):
        return f"{text} (`{wanted}`)" if wanted.strip("`") not in text else f"`{wanted}`"
    return f"{picture}[{text}]({os.path.relpath(place, seen_from)}{'#' + anchor if anchor else ''})"
