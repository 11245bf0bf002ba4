"""The line of curl that shows how to ask a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot.inputs.base import About
from panglot.inputs.curl_line import curl_line
from panglot.terminal.text import visible

BASE = "http://127.0.0.1:8080"


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert visible("plain äöü 数字 🙂") == "plain äöü 数字 🙂"
    assert visible("a\u202eb\x07c\ud800d\ne", keep="\n") == "a\\u202eb\\x07c\\ud800d\ne"
    assert visible("\U000e0001") == "\\U000e0001"


def line_for(api: dict[str, Any], folder: Path) -> str:
    return curl_line(BASE, About("plain", "/predict", {}, api), folder)


def test_the_line_to_copy(tmp_path: Path) -> None:
    form = {
        "example": {"kind": "form", "files": {"image": "image/png"}, "names": {"image": "b.png"}, "fields": ["top k"]}
    }
    assert line_for(form, tmp_path) == "", "a file that is not there cannot be sent"
    for name in ("a.png", "b.png"):
        (tmp_path / name).touch()
    assert "top k" not in line_for(form, tmp_path), "a field whose value nobody knows"
    form["example"]["values"] = {"top k": "3"}
    assert "b.png -F 'top k=3'" in line_for(form, tmp_path)
    sound = {"example": {"kind": "file", "type": "audio/x-wav", "name": ""}}
    (tmp_path / "sound.wav").touch()
    line = line_for(sound, tmp_path)
    assert line.startswith("curl -H 'Content-Type: audio/x-wav' --data-binary @")
    assert line.endswith(f"sound.wav {BASE}/predict")
    quoted = {"example": {"kind": "json", "value": "it's"}}
    assert """-d '"it'"'"'s"'""" in line_for(quoted, tmp_path)


def test_values_of_a_package_are_better_than_made_up_ones(tmp_path: Path) -> None:
    """Those of request.json stand before a guess by the type hints, but not before the example of the script."""
    own = {"kind": "json", "value": {"text": "of the script"}}
    assert "of the script" in line_for({"example": own}, tmp_path)
    assert "of the script" in line_for({"example": {**own, "guessed": True}}, tmp_path)
    (tmp_path / "request.json").write_text('{"text": "of the file"}')
    assert "of the script" in line_for({"example": own}, tmp_path)
    assert "of the file" in line_for({"example": {**own, "guessed": True}}, tmp_path)


def test_no_line_is_better_than_one_that_does_not_work(tmp_path: Path) -> None:
    long = {"example": {"kind": "json", "value": "x" * 999}}
    assert line_for(long, tmp_path) == ""
    (tmp_path / "request.json").write_text('"' + "x" * 999 + '"')
    assert "request.json" in line_for(long, tmp_path)
    assert line_for({}, tmp_path / "gone") == ""
    hints = {
        "type": "object",
        "properties": {"words": {"type": "array", "items": {"type": "string"}}, "top": {"default": 3}},
    }
    line = line_for({"request_schema": hints}, tmp_path / "gone")
    assert """-d '{"words":["text"],"top":3}'""" in line
