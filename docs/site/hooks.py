"""What the site needs beyond its pages: files of the repository's root as pages, links that lead out of docs/, a switch
between languages on every page, what kind of page each is, and the colours of the server's own pages.

mkdocs knows the files below docs/ only. A link to anything else of the repository works where the pages are read as
files; on the site its text stays, with the path behind it. One that leads nowhere fails the build.
"""

from __future__ import annotations

import copy
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
CHINESE = "zh/"
LANGUAGES = (("English", "en"), ("简体中文", "zh"))
STATIC = ROOT / "src" / "panglot" / "web" / "pages" / "static"
BEFORE_SEARCH = '<label class="md-header__button md-icon" for="__search">'
"""Where the switch goes. The theme's own would look for a map of the site, which cannot be read from files."""
COLOUR = re.compile(r"--([a-z-]+): light-dark\((#\w+), (#\w+)\);")
TITLE = re.compile(r"^# .*$", re.MULTILINE)
TABLE = re.compile(r"(<table>.*?</table>)", re.DOTALL)
CODE = re.compile(r"<code>([^<\n]+)</code>")
FLAG, JOINT = re.compile(r"(?<![\w-])--\w+"), re.compile(r"(?<=\w)([_/.=,])(?=\w)")
SHORT, SHORT_IN_TABLE = 24, 14
"""Letters of code that is never broken."""
KINDS = {
    "tutorial": ("Tutorial: follow it step by step", "教程：照着一步一步做"),
    "how-to": ("How-to guide: one task", "操作指南：完成一件事"),
    "reference": ("Reference: to look things up", "参考：供查阅"),
    "explanation": ("Explanation: how it works, and why", "原理：怎样工作，为什么"),
}
"""What is shown under the title of a page, in each language."""

log = logging.getLogger("mkdocs.plugins.repository")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie in the root, and what the theme wants of us."""
    for source, name in TO_PAGES.items():
        files.append(File.generated(config, name, content=relinked((ROOT / source).read_text(), source)))
    files.append(File.generated(config, "assets/search.js", content=(ROOT / "docs/site/search.js").read_text()))
    files.append(File.generated(config, "assets/icon.svg", content=(STATIC / "icon.svg").read_text()))
    style = colours() + (ROOT / "docs/site/style.css").read_text()
    files.append(File.generated(config, "assets/style.css", content=style))
    return files


def colours() -> str:
    """The colours of the server's pages as variables of the site."""
    lines = [
        f"  --panglot-{name}: {light};\n  --panglot-{name}-dark: {dark};\n"
        for name, light, dark in COLOUR.findall((STATIC / "panglot.css").read_text())
    ]
    return f":root {{\n{''.join(lines)}}}\n"


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    name = page.file.src_uri
    text = markdown if name in TO_PAGES.values() else relinked(markdown, f"docs/{name}")
    kind = kind_of(name, config.extra["kinds"])
    if kind:
        mark = f'<p class="kind">{KINDS[kind][name.startswith(CHINESE)]}</p>'
        text = TITLE.sub(lambda title: f"{title[0]}\n\n{mark}\n", text, count=1)
    return text


def kind_of(name: str, kinds: dict[str, str]) -> str:
    """The kind of a page, by the longest beginning of its path that `extra.kinds` of mkdocs.yml names."""
    fitting = [start for start in kinds if name.removeprefix(CHINESE).startswith(start)]
    return kinds[max(fitting, key=len)] if fitting else ""


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Give the page its own language: the theme's words, the pages beside it, and the way to its twin."""
    name = page.file.src_uri
    here = name.startswith(CHINESE)
    config.theme["language"] = LANGUAGES[here][1]
    pages = {each.file.src_uri: each for each in nav.pages}
    twins = (name.removeprefix(CHINESE), f"{CHINESE}{name.removeprefix(CHINESE)}")
    homes = ("index.md", f"{CHINESE}index.md")
    page.meta["switch"] = pages.get(twins[not here], pages[homes[not here]]).url or "index.html"
    context["nav"] = copy.copy(nav)
    chinese = [item for item in nav.items if item.title == LANGUAGES[1][0]]
    context["nav"].items = chinese[0].children if here else [item for item in nav.items if item not in chinese]
    context["nav"].homepage = pages[homes[here]]
    return context


def on_post_page(output: str, page: Any, **_: Any) -> str:
    up = "../" * page.url.count("/")
    words, code = LANGUAGES[not page.file.src_uri.startswith(CHINESE)]
    switch = f'<a class="md-header__button language" lang="{code}" href="{up}{page.meta["switch"]}">{words}</a>'
    output = SHIM.sub(f'"{up}assets/search.js"', output).replace(BEFORE_SEARCH, switch + BEFORE_SEARCH, 1)
    return "".join(breakable(part, in_table=part.startswith("<table>")) for part in TABLE.split(output))


def breakable(html: str, in_table: bool) -> str:
    """Code in a line of text breaks between words, if it must: never in a word, nor after the dashes of a flag."""

    def broken(code: re.Match[str]) -> str:
        if len(code[1]) <= (SHORT_IN_TABLE if in_table else SHORT):
            return f'<code class="whole">{code[1]}</code>'
        flags = FLAG.sub(r'<span class="whole">\g<0></span>', code[1])
        return JOINT.sub(r"\1<wbr>", f"<code>{flags}</code>")

    return CODE.sub(broken, html)


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
