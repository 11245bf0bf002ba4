"""The scripts and requests of docs/guides, run as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import ROOT, serving

GUIDES = ROOT / "docs" / "guides"
TASK = re.compile(r"^## (.+?)\n.*?```python\n(.*?)```\n\n```\n\$ (curl .*?)\n(.*?)```", re.MULTILINE | re.DOTALL)
TASKS = TASK.findall((GUIDES / "first-hour.md").read_text())


@pytest.mark.parametrize(("title", "script", "command", "answer"), TASKS, ids=[task[0] for task in TASKS])
def test_a_task_of_the_first_hour(title: str, script: str, command: str, answer: str, tmp_path: Path) -> None:
    assert len([line for line in script.splitlines() if line.strip()]) <= 10
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.py").write_text(script)
    (tmp_path / "seven.png").write_bytes(b"12345678")
    with serving(package) as server:
        words = shlex.split(command.replace("http://127.0.0.1:8080", server.url))
        done = subprocess.run([words[0], "-sS", *words[1:]], capture_output=True, text=True, check=True, cwd=tmp_path)
    told = done.stdout.replace("\r", "")
    if "-OJ" in words:
        assert (tmp_path / answer.strip()).read_text() == "1,2\n3,4"
    else:
        assert all(line in told for line in answer.splitlines())


def test_the_guide_has_its_tasks() -> None:
    assert len(TASKS) == 5
    assert (GUIDES / "first-hour.md").read_text().count("```python") == len(TASKS)


def test_the_guide_of_chat_and_embeddings(tmp_path: Path) -> None:
    script, program = re.findall(r"```python\n(.*?)```", (GUIDES / "chat.md").read_text(), re.DOTALL)
    package = tmp_path / "parrot"
    package.mkdir()
    (package / "model.py").write_text(script)
    with serving(package) as server:
        program = program.replace("http://127.0.0.1:8080", server.url)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "Hello to you. [3.0, 1.0]\n", done.stderr
