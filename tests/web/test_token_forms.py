"""The forms in which a platform's clients carry the token: each opens its routes, and none reaches the script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.server import Server, serving

TOKEN = "a-Secret.Token"
FORMS = {
    "bearer": {"authorization": f"Bearer {TOKEN}"},
    "api-key": {"authorization": f"Api-Key {TOKEN}"},
    "in any case": {"authorization": f"api-key  {TOKEN}"},
    "token": {"authorization": f"Token {TOKEN}"},
    "raw": {"authorization": TOKEN},
    "header": {"x-api-key": TOKEN},
}
WRONG = [
    {},
    {"authorization": f"Other {TOKEN}"},
    {"authorization": f"Api-Key{TOKEN}"},
    {"authorization": "Api-Key"},
    {"authorization": f"{TOKEN}x"},
    {"x-api-key": TOKEN[:-1]},
    {"x-api-key": ""},
    {"x-auth": TOKEN},
]


@pytest.fixture(scope="module")
def guarded(atlas: Callable[..., Path]) -> Iterator[Server]:
    """The default is a model of the atlas; a plain one, whose contract declares no further form, is beside it."""
    package = atlas("guarded")
    env = {"PYTHONPATH": str(package.parent / "outside"), "PANGLOT_TOKEN": TOKEN}
    with serving(
        package, "--cors-origin", "https://a.example", f"plain={Path(__file__).parents[1]}/packages/function", env=env
    ) as running:
        yield running


@pytest.mark.parametrize("form", FORMS)
def test_every_declared_form_opens_routes_and_pages(guarded: Server, form: str) -> None:
    for _ in range(3):  # The second and third have a head that was parsed before.
        assert guarded.client.post("/ask", content=b"{}", headers=FORMS[form]).status_code == 200
    assert guarded.client.get("/v1/models/guarded", headers=FORMS[form]).status_code == 200


@pytest.mark.parametrize("headers", WRONG)
def test_other_forms_and_tokens_are_refused(guarded: Server, headers: dict[str, str]) -> None:
    refused = guarded.client.post("/ask", content=b"{}", headers=headers)
    assert (refused.status_code, refused.json()["atlas"]) == (401, "unauthorized")
    assert guarded.client.get("/v1/models/guarded", headers=headers).status_code == 401


@pytest.mark.parametrize("form", FORMS)
def test_only_the_dialect_that_declares_a_form_takes_it(guarded: Server, form: str) -> None:
    plain = guarded.client.post("/models/plain/predict", json=1, headers=FORMS[form])
    assert plain.status_code == (200 if form == "bearer" else 401)
    page = guarded.client.get("/status.json", headers=FORMS[form])
    assert page.status_code == (200 if form == "bearer" else 401)


@pytest.mark.parametrize("form", FORMS)
def test_no_form_reaches_the_script(guarded: Server, form: str) -> None:
    beside = {"authorization": f"Bearer {TOKEN}", "x-api-key": "of-somebody-else"}
    for headers in (FORMS[form], beside | FORMS[form]):
        answer = guarded.client.post("/headers", content=b"{}", headers=headers | {"x-mine": "kept"})
        told = answer.json()["headers"]
        assert "x-mine:kept" in told
        assert TOKEN not in told
        assert "authorization" not in told
        assert "x-api-key" not in told


def test_browsers_may_send_the_declared_header(guarded: Server) -> None:
    answer = guarded.client.options("/ask", headers={"origin": "https://a.example"})
    assert "x-api-key" in answer.headers["access-control-allow-headers"]
