"""Every block of every page is run: a page is read from the top, in a folder of its own. CONTRIBUTING.md says how."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from panglot.cli.commands import panglot
from support import pages
from support.pages import Block, Step
from support.server import ROOT
from support.shell_lines import Ran, run_lines
from support.tutorials import PREPARED

PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in PAGES if path.is_file()}
BLOCKS = {name: pages.blocks(text) for name, text in TEXTS.items()}
TRANSLATED = ("README.zh-CN.md", "docs/zh/")
"""Their blocks are those of their originals: test_translations."""
RUN = [name for name, blocks in BLOCKS.items() if pages.steps(blocks, Path("/")) and not name.startswith(TRANSLATED)]
KINDS = ("sh", "console", "python", "synopsis", *pages.SAID, *pages.PARSED)
INDENTED = re.compile(r"(?<=\n\n)    \S.*")
REFUSED = 22
"""How curl ends when a server refuses, which is fine where the refusal is shown."""


READ = [pytest.param(name, marks=[pytest.mark.rest("installs more")] if name in PREPARED else []) for name in RUN]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", READ)
def test_a_page_from_its_top_to_its_end(name: str, tmp_path: Path) -> None:
    folder, aside = tmp_path / "reader", tmp_path / "aside"
    folder.mkdir()
    for brought in ("examples", "benchmarks/batching"):
        if f"{brought}/" in TEXTS[name]:
            shutil.copytree(ROOT / brought, folder / brought, ignore=shutil.ignore_patterns("__pycache__"))
    pages.keep(BLOCKS[name], aside)
    todo = pages.steps(BLOCKS[name], aside)
    variables = PREPARED[name](folder) if name in PREPARED else {}
    done = run_lines([step.line for step in todo], folder, tmp_path / "lines.sh", **variables)
    for step, ran in zip(todo, done, strict=True):
        check(name, step, ran)


def check(name: str, step: Step, ran: Ran) -> None:
    """A line ended as it should, and said what the page shows."""
    where = f"{name}:{step.block.line}\n$ {step.line}\n{ran.said}"
    assert ran.code == step.code or (ran.code == REFUSED and step.shown and not step.code), f"code {ran.code}: {where}"
    assert pages.is_said(step.shown, ran.said, step.figures_vary), f"{where}\nis not what is shown:\n{step.shown}"


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_says_what_it_is(name: str) -> None:
    """So that none is passed over in silence."""
    strange = [block for block in BLOCKS[name] if not (block.title or block.not_run or block.language in KINDS)]
    assert not [f"line {block.line}: {block.language or 'no language'}" for block in strange]
    prose = pages.BLOCK.sub("", TEXTS[name])
    assert not [line for line in INDENTED.findall(prose) if not re.match(r" +([-*\d]|\|)", line)], "fences, please"


@pytest.mark.parametrize("name", BLOCKS)
def test_what_is_not_run_can_be_read(name: str) -> None:
    for block in BLOCKS[name]:
        if not block.not_run:
            read(block)


def read(block: Block) -> None:
    """Parse a block of data; look up the options of a form of a command."""
    text = block.text
    if block.language == "toml":
        tomllib.loads(text)
    elif block.language == "yaml":
        list(yaml.safe_load_all(text))
    elif block.language == "json" and "..." not in text:
        values(text)
    elif block.language == "synopsis":
        for line in text.splitlines():
            known(line)


def values(text: str) -> None:
    """JSON, or lines of it."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)


def known(line: str) -> None:
    """A form of a command has only options that the command takes."""
    words = line.split()
    assert words[0] == "panglot", line
    command = panglot.get_command(click.Context(panglot), words[1])
    assert command, f"there is no {words[1]}"
    options = {
        name for option in command.get_params(click.Context(command)) for name in (*option.opts, *option.secondary_opts)
    }
    wanted = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", line))
    assert wanted <= options, f"{words[1]} does not take {wanted - options}"
