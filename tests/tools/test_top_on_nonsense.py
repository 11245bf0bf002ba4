"""`panglot top` at the address of something that is no server of ours, or of another version: a sentence."""

from __future__ import annotations

import copy
import http.server
import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from panglot.errors import StartError
from panglot.tools import top
from support.server import panglot, serving

ESCAPES = "\x1b[31mred\x1b]0;title\x07[/bold][red]"
WHOLE = (b"[1, 2]", b"null", b"7", b"{}", b"[" * 200_000, b"1" * 5_000, b"\xff\xfe", b"<html>")
ODD: tuple[Any, ...] = (None, 7, -1, "", "text", ESCAPES, [], [[]], {}, {"a": 1}, 1e400, float("nan"), 10**30, True)


class Nonsense(http.server.BaseHTTPRequestHandler):
    answer = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *words: Any) -> None: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nonsense)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("answer", WHOLE, ids=range(len(WHOLE)))
def test_what_is_no_figures_is_told_in_a_sentence(address: str, answer: bytes) -> None:
    Nonsense.answer = answer
    for flags in (("--once",), ("--json",)):
        done = panglot("top", address, *flags)
        if flags == ("--json",) and answer == b"{}":
            assert done.stdout == "{}\n"
            continue
        assert done.returncode == 3, done.stdout
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """Those of a real server, with something of everything."""
    with serving("documented_json") as server:
        server.predict({"text": "a fox", "labels": ["fox"], "options": None})
        server.predict({"text": "fail", "labels": [], "options": None})
        told: dict[str, Any] = server.client.get("/status.json").json()
    return told


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places inside of figures, of a list the first and the last."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        if not isinstance(value, list) or key in (0, len(value) - 1):
            yield (*path, key)
            yield from places(inner, (*path, key))


def test_figures_with_anything_in_any_place_are_shown_or_refused(figures: dict[str, Any]) -> None:
    shown = refused = 0
    for path in places(figures):
        for odd in ODD:
            changed = copy.deepcopy(figures)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = odd
            console = Console(file=io.StringIO(), width=100)
            try:
                console.print(top.screen(changed, "http://localhost", 100))
                shown += 1
            except StartError:
                refused += 1
            assert "\x1b" not in console.file.getvalue(), path  # type: ignore[attr-defined]
    assert shown > 100
    assert refused > 100
