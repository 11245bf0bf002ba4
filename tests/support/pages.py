"""The blocks of a page of the documents, and the lines of shell that they come to: CONTRIBUTING.md, Writing a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.shell_lines import joined

BLOCK = re.compile(
    r"(?P<marks>(?:^ *<!--[^\n]*-->\n)*)^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"<!-- (?P<what>not run: \S.*|not compared: \S.*|figures vary|exit \d+) -->")
TITLE = re.compile(r'title="(?!Terminal|终端)([^"]+)"')
"""The file that a block is to be written to. A block may say too in which terminal its lines are typed."""
TYPED = "$ "
SAID = ("json", "text")
"""Blocks that show what the command before them says."""
PARSED = ("toml", "yaml")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is to be written to, the comments above it."""

    language: str
    title: str
    marks: tuple[str, ...]
    text: str
    line: int

    @property
    def not_run(self) -> bool:
        return any(mark.startswith("not run: ") for mark in self.marks)

    @property
    def compared(self) -> bool:
        return not any(mark.startswith("not compared: ") for mark in self.marks)

    @property
    def figures_vary(self) -> bool:
        return "figures vary" in self.marks

    @property
    def code(self) -> int:
        """How its last line ends."""
        return next((int(mark.split()[1]) for mark in self.marks if mark.startswith("exit ")), 0)


@dataclass
class Step:
    """A line of shell, how it ends, what the page shows as said to it, and of which block it is."""

    line: str
    block: Block
    code: int = 0
    shown: str = ""
    figures_vary: bool = False


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page. Raises AssertionError for a comment above one that nobody understands."""
    every = []
    for block in BLOCK.finditer(text):
        comments = block["marks"].split("\n")[:-1]
        for comment in comments:
            assert MARK.fullmatch(comment.strip()), f"{comment.strip()} means nothing: CONTRIBUTING.md, Writing a page"
        language, _, rest = block["info"].strip().partition(" ")
        title = TITLE.search(rest)
        body = re.sub(rf"^{block['indent']}", "", block["text"], flags=re.MULTILINE)
        marks = tuple(comment.strip()[5:-4] for comment in comments)
        line = text.count("\n", 0, block.start("indent")) + 1
        every.append(Block(language, title[1] if title else "", marks, body, line))
    return every


def steps(page: Sequence[Block], aside: Path) -> list[Step]:
    """What is to be run for a page, in its order. `keep` writes what waits in the folder `aside`."""
    todo: list[Step] = []
    for block in page:
        if not block.not_run:
            fresh = list(_of(block, aside))
            if fresh:
                fresh[-1].code = block.code
            elif block.language in SAID and block.compared and todo:
                todo[-1].shown += block.text
                todo[-1].figures_vary |= block.figures_vary
            todo += fresh
    return todo


def _of(block: Block, aside: Path) -> Iterator[Step]:
    if block.title:
        folder = _quoted(Path(block.title).parent)
        yield Step(f"mkdir -p {folder} && cp {_kept(block, aside)} {_quoted(block.title)}", block)
    elif block.language == "sh":
        for line in joined(block.text.strip().splitlines()):
            if line and not line.startswith("#"):
                yield Step(_bare(line), block)
    elif block.language == "console":
        yield from _typed(block)
    elif block.language == "python":
        yield Step(f"python {_kept(block, aside)}", block)


def _typed(block: Block) -> Iterator[Step]:
    """The typed lines of a block, each with what is shown below it."""
    pending: Step | None = None
    for line in joined(block.text.rstrip("\n").splitlines(), TYPED):
        if line.startswith(TYPED):
            if pending:
                yield pending
            pending = Step(_bare(line[len(TYPED) :]), block, figures_vary=block.figures_vary)
        else:
            assert pending, f"line {block.line}: nothing was typed before {line!r}"
            pending.shown += f"{line}\n" if block.compared else ""
    if pending:
        yield pending


def keep(page: Sequence[Block], aside: Path) -> None:
    """Write blocks that become files or programs to a folder."""
    aside.mkdir(exist_ok=True)
    for block in page:
        if block.title or block.language == "python":
            (aside / f"line-{block.line}.py").write_text(block.text)


def _kept(block: Block, aside: Path) -> str:
    return _quoted(aside / f"line-{block.line}.py")


def _quoted(path: object) -> str:
    return shlex.quote(str(path))


def _bare(line: str) -> str:
    """A line without its comment."""
    return re.sub(r"\s+# .*$", "", line)


# What was said


def is_said(shown: str, said: str, figures_vary: bool = False) -> bool:
    """Whether what a page shows was said: line by line in that order, or, as JSON over several lines, on the whole."""
    if figures_vary:
        shown, said = (re.sub(r"\d[\d.,]*", "0", text) for text in (shown, said))
    lines = (_squeezed(line) for line in said.splitlines())
    if all(any(_fits(wanted, line) for line in lines) for wanted in map(_squeezed, shown.splitlines()) if wanted):
        return True
    return bool(re.search(_pattern(_squeezed(shown)), _squeezed(said)))


def _fits(wanted: str, line: str) -> bool:
    return re.fullmatch(_pattern(wanted), line) is not None


def _pattern(text: str) -> str:
    return ".*".join(re.escape(piece) for piece in text.split("..."))


def _squeezed(text: str) -> str:
    """Without spaces, and without decimals beyond the third."""
    return re.sub(r"(\d\.\d{3})\d+", r"\1", re.sub(r"\s", "", text))
