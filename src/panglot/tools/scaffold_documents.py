"""The test and the README of a new package, which all templates have alike."""

from __future__ import annotations

import re

from panglot.dialects.base import Template

TEST, README = "test_package.py", "README.md"
BROWSER = re.compile(r"http://127\.0\.0\.1:\d+")
ASKED = '''\
"""Runs the package on {sends} and looks at the answer. In this folder: pip install pytest, then pytest."""

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_the_answer():
    command = ["panglot", "run", str(HERE), str(HERE / "{sends}"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["answer"]
    assert {check}
'''
EXPLAINED = """\
# {title}

In this folder, make it ready and serve it. Then call it from another terminal:

{commands}

It answers `{answer}`.
Open {address}/ to try it in a browser: its example is there already.
Begin with `{script}`: put your own model there. `pytest` runs `{test}`, which looks at one answer.
`panglot serve . --dev` shows errors in full. `panglot package .` writes what a container needs.
"""


def documents(template: Template) -> dict[str, tuple[str, str]]:
    """Files that the template itself does not have, each with its purpose and its text."""
    made = {}
    if template.check and TEST not in template.files:
        text = ASKED.format(sends=template.sends, check=template.check)
        made[TEST] = ("a test: the answer to one request", text)
    if template.check and README not in template.files:
        made[README] = ("how to serve, call and test it", template.card + _readme(template))
    return made


def _readme(template: Template) -> str:
    lines = [_install(template), _here(template.prepare), "panglot serve .", _here(template.call)]
    address = BROWSER.search(template.call)
    assert address is not None
    return EXPLAINED.format(
        title=template.title,
        commands="\n".join(f"    {line}" for line in dict.fromkeys(lines) if line),
        answer=template.answer,
        address=address[0],
        script=next(iter(template.files)),
        test=TEST,
    )


def _install(template: Template) -> str:
    if template.installs:
        return f"pip install {template.installs}"
    listed = "requirements.txt" in template.files
    return "pip install -r requirements.txt" if listed else ""


def _here(command: str) -> str:
    """A command as it is typed in the folder of the package."""
    return command.replace("{folder}/", "").replace("{folder}", ".")
