"""The table of docs/reference/typed.md, sent row by row to a server on the oldest CPython, 3.11 and the newest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import environments, interpreters
from support.server import ROOT, serving

PACKAGES = ("annotated-types", "numpy", "pillow", "pydantic", "typing_extensions")
VERSIONS = interpreters.found()
CHOSEN = [version for version in dict.fromkeys([*[*VERSIONS][:1], "3.11", *[*VERSIONS][-1:]]) if version in VERSIONS]
LITERALS = (
    "import re",
    "try:\n    from typing import Annotated, Literal",
    "except ImportError:\n    from typing_extensions import Annotated, Literal",
)
SHOWN = """
def shown(value):
    if isinstance(value, PIL.Image.Image):
        return "an image, %s, %d by %d" % (value.mode, value.width, value.height)
    return re.sub(r",\\s+", ", ", repr(value))
"""


class Row(NamedTuple):
    """One row: a hint, a value that fits and what becomes of it, a value that does not and what is said."""

    hint: str
    fits: str
    gets: str
    misfit: str
    message: str


def page() -> str:
    return (ROOT / "docs" / "reference" / "typed.md").read_text(encoding="utf-8")


def rows() -> list[Row]:
    table = page().partition("| hint | fits |")[2].split("\n\n")[0]
    cells = [re.split(r"(?<!\\) ?\| ?", line.strip()[1:-1]) for line in table.splitlines()[2:]]
    return [Row(*(cell.strip().strip("`").replace("\\|", "|") for cell in each)) for each in cells]


def spelled(hint: str, version: str) -> str:
    """A hint as an older CPython spells it."""
    if int(version.partition(".")[2]) >= 10:
        return hint
    hint = re.sub(r"\b(list|dict|set|tuple)\[", lambda name: f"{name[1].title()}[", hint)
    return f"Union[{hint.replace(' | ', ', ')}]" if " | " in hint else hint


def script(version: str) -> str:
    """A script whose predict has one parameter for each row."""
    classes = page().partition("The classes:\n\n```python\n")[2].partition("```")[0]
    parts = [*LITERALS, classes, SHOWN]
    parameters = "".join(f"    r{number}: {spelled(row.hint, version)} = ...,\n" for number, row in enumerate(rows()))
    body = "    return [shown(value) for value in locals().values() if value is not ...]\n"
    return "\n".join([*parts, f"def predict(\n{parameters}):\n{body}"])


def said(answer: Any, parameter: str) -> str:
    """The first wrong field, as the table has it: what is inside of the value, then the message."""
    first = answer.json()["error"]["fields"][0]
    return f"{first['path'].removeprefix(parameter)} {first['message']}".strip()


@pytest.mark.parametrize("version", CHOSEN)
@pytest.mark.timeout(300)
def test_every_row_is_true(version: str, tmp_path: Path) -> None:
    python = environments.python_with(f"typed-{version}", *PACKAGES, base=VERSIONS[version])
    (tmp_path / "model.py").write_text(script(version), encoding="utf-8")
    wrong = []
    with serving(tmp_path, "--python", python) as server:
        for number, row in enumerate(rows()):
            name = f"r{number}"
            answer = server.predict({name: json.loads(row.fits)})
            got = answer.json()[0] if answer.status_code == 200 else answer.text
            wrong += [(row, got)] if got != row.gets else []
            if row.misfit:
                answer = server.predict({name: json.loads(row.misfit)})
                got = said(answer, name) if answer.status_code == 422 else answer.text
                wrong += [(row, got)] if got != row.message else []
    assert wrong == []
