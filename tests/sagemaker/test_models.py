"""Several models in one server: the paths of multi-model endpoints, for clients and for the administrator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.server import PACKAGES, serving

ADMIN = "an-admin-token"


@pytest.mark.document("sagemaker.32", "sagemaker.39")
def test_models_are_listed_invoked_unloaded_and_loaded(tmp_path: Path) -> None:
    models = tmp_path / "models"
    for name in ("first", "second"):
        shutil.copytree(PACKAGES / "sagemaker_training", models / name)
    (models / "second" / "model.json").write_text('{"factor": 5}')
    with serving(Path(f"--models={models}"), "--admin", env={"PANGLOT_ADMIN_TOKEN": ADMIN}) as server:
        bearer = {"Authorization": f"Bearer {ADMIN}"}
        for name, answer in (("first", [3]), ("second", [5])):
            assert server.client.post(f"/models/{name}/invoke", json=[1]).json() == answer
        for target, answer in (("first", [3]), ("second.tar.gz", [5])):
            chosen = {"X-Amzn-SageMaker-Target-Model": target}
            assert server.client.post("/endpoints/any/invocations", json=[1], headers=chosen).json() == answer
        nobody = server.client.post(
            "/endpoints/any/invocations", json=[1], headers={"X-Amzn-SageMaker-Target-Model": "third.tar.gz"}
        )
        assert (nobody.status_code, nobody.json()["type"]) == (404, "ResourceNotFoundException")
        listed = server.client.get("/models", headers=bearer).json()["models"]
        assert [model["modelName"] for model in listed] == ["first", "second"]
        assert server.client.get("/models").status_code in (401, 403)
        assert server.client.delete("/models/second", headers=bearer).status_code == 200
        assert server.client.post("/models/second/invoke", json=[1]).status_code == 404
        order = {"model_name": "second", "url": str(models / "second")}
        assert server.client.post("/models", json=order, headers=bearer).status_code == 200
        assert server.client.post("/models/second/invoke", json=[1]).json() == [5]
        assert server.client.post("/models", json=order, headers=bearer).status_code == 409
