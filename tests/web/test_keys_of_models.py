"""Keys for some of the models, at the routes of platforms that administer all models of their dialect."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from panglot.web.access import key_file
from support.models import all_of
from support.server import PACKAGES, Server, serving

RIGHTS = f"may = {list(key_file.RIGHTS)}"
ENTRIES = {"all": (RIGHTS,), "first": (RIGHTS, 'models = ["first"]'), "second": (RIGHTS, 'models = ["second"]')}
SECRETS = {name: key_file.new_secret() for name in ENTRIES}


@pytest.fixture(scope="module", params=["torchserve_echo", "sagemaker_training"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    for name in ("first", "second"):
        shutil.copytree(PACKAGES / request.param, folder / name)
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text("\n".join(key_file.written(name, SECRETS[name], ENTRIES[name]) for name in ENTRIES))
    with serving(all_of(folder), "--keys", str(file), "--admin", ready=False) as running:
        # The end of `serving` looks at the metrics.
        running.token = SECRETS["all"]
        running.wait_ready()
        yield running


def status(server: Server, key: str, method: str, path: str, **body: object) -> int:
    headers = {"authorization": f"Bearer {SECRETS[key]}"}
    return server.client.request(method, path, headers=headers, json=body or None).status_code


@pytest.mark.parametrize(("own", "other"), [("first", "second"), ("second", "first")])
def test_a_key_administers_the_models_that_it_is_for(own: str, other: str, server: Server) -> None:
    listed = server.client.get("/models", headers={"authorization": f"Bearer {SECRETS[own]}"}).json()["models"]
    assert [model["modelName"] for model in listed] == [own]
    assert status(server, own, "GET", f"/models/{own}") == 200
    for method, path, body in (
        ("GET", f"/models/{other}", {}),
        ("DELETE", f"/models/{other}", {}),
        ("POST", f"/models?url={other}", {"model_name": other, "url": other}),
    ):
        assert status(server, own, method, path, **body) == 403, (method, path)
    assert status(server, own, "POST", f"/models?url={own}", model_name=own, url=own) == 409
    assert status(server, "all", "GET", f"/models/{other}") == 200
