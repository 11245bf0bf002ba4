"""`panglot call`: the client in a shell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest

from support.server import ROOT, Server, panglot, serving
from support.terminal import in_terminal

DIGITS = ROOT / "examples" / "digits"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(DIGITS) as running:
        yield running


def test_answers_as_lines_of_json(server: Server) -> None:
    done = panglot("call", server.url, str(DIGITS / "seven.png"), str(DIGITS / "three.png"), "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["status"], row["answer"]["digit"]) for row in rows] == [(200, 7), (200, 3)]
    assert {"input", "status", "answer", "times_ms"} == set(rows[0])
    assert {"queue", "inference", "total"} <= set(rows[0]["times_ms"])
    assert "2 of 2 answered" in done.stderr
    assert done.returncode == 0


def test_an_input_that_fails_is_reported_and_the_rest_go_on(server: Server) -> None:
    done = panglot("call", server.url, "true", str(DIGITS / "seven.png"), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["status"] for row in rows] == ["400", "200"]
    assert "no picture" in rows[0]["error"]
    assert done.returncode == 1


def test_without_inputs_the_example_of_the_server_is_sent(server: Server) -> None:
    done = panglot("call", server.url)
    assert done.returncode == 3
    assert "the server has no example in JSON" in done.stderr
    with serving(ROOT / "examples" / "tiinfer") as other:
        done = panglot("call", other.url)
    assert json.loads(done.stdout)["answer"]["digits"] == [7]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("http://127.0.0.1:9", "1", "--wait", "0.1"), "Connection refused (fix: is the server running?)"),
        (("127.0.0.1:9", "1"), "is no address of a server (fix: such as http://127.0.0.1:8080, or unix:"),
    ],
)  # fmt: skip
def test_wrong_uses(words: tuple[str, ...], message: str) -> None:
    done = panglot("call", *words)
    assert done.returncode == 3
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_table_on_a_terminal(server: Server) -> None:
    """Narrow as it is, it breaks no word: columns of times give way."""
    shown = in_terminal(["panglot", "call", server.url, *map(str, sorted(DIGITS.glob("t*.png")))])
    assert shown.code == 0
    assert [line.split()[0].rpartition("/")[2] for line in shown.screen.splitlines()[1:3]] == ["three.png", "two.png"]
    assert '{"digit": 3, "confidence": 1.0}' in shown.screen
    assert "2 of 2 answered" in shown.screen
    assert "calling" not in shown.screen
    assert max(map(len, shown.screen.splitlines())) <= 80
