"""The promise: `--cors-origin '*'` lets every page call the script, and a value that is no origin is a start error."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.server import PACKAGES, panglot, serving

FUNCTION = str(PACKAGES / "function")
TOKEN = {"authorization": "Bearer secret"}
ASKED = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}


@pytest.mark.parametrize("env", [{}, {"PANGLOT_TOKEN": "secret"}], ids=["open", "with a token"])
def test_every_page_may_call(env: dict[str, str]) -> None:
    with serving("function", "--cors-origin", "*", env=env) as server:
        for origin in ("https://app.example", "http://localhost:3000", "null"):
            page = {"origin": origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
            before = server.client.options("/predict", headers={**page, **ASKED})
            assert before.status_code == 204
            assert before.headers["access-control-allow-origin"] == "*"
            assert "authorization" in before.headers["access-control-allow-headers"]
            answer = server.predict(7, headers={**page, **TOKEN})
            assert (answer.status_code, answer.json()) == (200, {"got": 7})
            assert answer.headers["access-control-allow-origin"] == "*"
            assert "x-request-id" in answer.headers["access-control-expose-headers"]
        if env:
            refused = server.predict(7, headers={"origin": "https://app.example"})
            assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")


def test_the_host_is_still_checked() -> None:
    """All origins are not all names: a name that leads here by DNS is not one of this machine's."""
    with serving("function", "--cors-origin", "*") as server:
        assert server.predict(7, headers={"host": "evil.example", "origin": "http://evil.example"}).status_code == 403


NONSENSE = [
    "nonsense", "app.example", "https://", "https//app.example", "https://app.example/", "https://app.example/path",
    "https://*.app.example", "**", "https://a b", "https://app.example:0", "https://app.example:99999", "ftp://a.example",
    "https://user@app.example", "javascript:alert(1)", "https://app.example https://b.example",
]  # fmt: skip


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_is_a_start_error(value: str) -> None:
    done = panglot("serve", FUNCTION, "--port", "0", "--cors-origin", value)
    assert done.returncode == 3
    assert "is no origin; write https://host" in done.stderr
    assert "Traceback" not in done.stderr


def test_nonsense_in_a_file_or_a_variable(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return request\n")
    (tmp_path / "panglot.toml").write_text('cors_origin = ["https://good.example", "bad"]\n')
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert (done.returncode, "'bad' is no origin" in done.stderr) == (3, True)
    done = panglot("serve", FUNCTION, "--port", "0", env={"PANGLOT_CORS_ORIGIN": "bad"})
    assert (done.returncode, "'bad' is no origin" in done.stderr) == (3, True)


def test_origins_are_known_however_they_were_written() -> None:
    """In upper case, or with the port that goes without saying: browsers spell it one way."""
    with serving("function", "--cors-origin", "HTTPS://App.Example:443,http://other.example:8080") as server:
        for origin, status in {
            "https://app.example": 200, "http://other.example:8080": 200, "https://app.example:444": 403,
            "http://app.example": 403, "http://other.example": 403,
        }.items():  # fmt: skip
            answer = server.predict(7, headers={"origin": origin})
            assert answer.status_code == status, origin
            assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)
