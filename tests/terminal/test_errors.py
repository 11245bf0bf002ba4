"""Errors in a terminal of 80 columns: lines end between words."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from panglot.terminal.text import at_words
from support.server import PACKAGES, panglot
from support.terminal import in_terminal

FUNCTION = str(PACKAGES / "function")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_error_is_broken_between_words(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import not_there_at_all\n\n\ndef predict(text: str):\n    return text\n")
    shown = in_terminal(["panglot", "run", str(tmp_path), "1"], columns=80).screen
    error = shown[shown.index("error: ") :].splitlines()
    assert len(error) > 1, shown
    assert all(len(line) <= 80 or " " not in line.strip() for line in error), error
    assert all(line.startswith("  ") for line in error[1:] if line.strip()), error
    assert "not_there_at_all" in " ".join(error)


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("--batch", "did you mean --max-batch?"),
        ("--workres", "did you mean --workers or --jobs-workers?"),
        ("--uds", "--help lists all options"),
    ],
)
def test_an_unknown_option_is_compared_by_its_word(option: str, fix: str) -> None:
    """Not by its dashes: --batch was taken for --no-auth."""
    done = panglot("serve", "package", option, "4")
    assert done.returncode == 3
    assert done.stderr == f"error: there is no option {option} (fix: {fix})\n"


@pytest.mark.parametrize("command", ["run", "serve", "bench"])
def test_a_word_too_long_for_a_name_is_no_file(command: str) -> None:
    """Not a traceback."""
    word = "What a lovely day. " * 40
    words = {"run": (FUNCTION, word), "serve": (word,), "bench": (FUNCTION, word)}
    done = panglot(command, *words[command])
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "does not exist" in done.stderr


def test_a_text_that_is_no_file_is_shown_as_json() -> None:
    done = panglot("run", FUNCTION, "it's fine")
    fix = "a text is JSON, in quotes: '\"it'\"'\"'s fine\"'"
    assert done.stderr == f"error: the input it's fine does not exist (fix: {fix})\n"


def test_a_body_may_be_longer_than_a_name() -> None:
    done = panglot("run", FUNCTION, json.dumps({"text": "a" * 5000}), "--json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flags", [("--workers", "3"), ("--fronts", "2"), ("--inline",)])
def test_a_missing_import_is_reported_once(flags: tuple[str, ...], tmp_path: Path) -> None:
    """However many processes import the script."""
    (tmp_path / "model.py").write_text("import not_there_at_all\n\n\ndef predict(text: str):\n    return text\n")
    done = panglot("serve", str(tmp_path), "--port", "0", *flags)
    assert done.returncode == 3
    assert done.stderr.count("ModuleNotFoundError") == 1, done.stderr
    assert done.stderr.count("is not installed") == 1, done.stderr


def test_one_byte_is_a_byte(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(count: int):\n    return b'x' * count\n")
    done = panglot("run", str(tmp_path), '{"count": 1}', '{"count": 2}')
    assert "<1 byte of " in done.stdout, done.stdout + done.stderr
    assert "<2 bytes of " in done.stdout


def test_words_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    text = "error: a short word and http://127.0.0.1:8080/a-very-long-address\nsecond"
    assert at_words(text, Terminal()) == (
        "error: a short word\n  and\n  http://127.0.0.1:8080/a-very-long-address\nsecond"
    )
