"""config.json: what it describes appears in the API, which model it is about, and that nothing in it stops us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.modelarts import NODE, config, package
from support.server import panglot, serving

SERVICE = NODE + "\n\nclass Service(SingleNodeService):\n    pass\n"
API = {
    "procotol": "http",
    "url": "/",
    "method": "post",
    "request": {
        "Content-type": "multipart/form-data",
        "data": {
            "type": "object",
            "properties": {"images": {"type": "file"}, "score": {"type": "float"}},
            "required": ["images"],
        },
    },
    "response": {
        "Content-type": "applicaton/json",
        "data": {
            "type": "object",
            "properties": {
                "boxes": {"type": "array", "items": [{"type": "array", "item": {"type": "number"}}]},
                "label": {"type": "string"},
            },
        },
    },
}


def inspected(folder: Path, *flags: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = panglot("inspect", str(folder), "--json", *flags, env=env)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_apis_are_in_the_openapi_document_and_never_enforced(tmp_path: Path) -> None:
    """27 misspellings do not stop it; 28 the response schema is not enforced."""
    package(tmp_path, SERVICE, config("MindSpore", apis=[API]), sample__png=b"")
    with serving(tmp_path) as server:
        operation = server.client.get("/openapi.json").json()["paths"]["/"]["post"]
        content = operation["requestBody"]["content"]
        assert list(content) == ["multipart/form-data"]
        schema = content["multipart/form-data"]["schema"]
        assert schema["properties"]["images"] == {"type": "string", "format": "binary"}
        assert schema["properties"]["score"] == {"type": "number"}
        assert schema["required"] == ["images"]
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert answer["properties"]["boxes"] == {
            "type": "array", "items": {"type": "array", "items": {"type": "number"}},
        }  # fmt: skip
        assert server.client.get("/docs").status_code == 200
        server.wait_log(r"try: curl -F images=@\S*sample.png http://")
        server.wait_log("spells protocol 'procotol'")
        assert server.client.post("/", json=[1, 2]).json() == [1, 2]


def test_a_form_of_texts_is_a_form(tmp_path: Path) -> None:
    request = {"Content-type": "multipart/form-data", "data": {"properties": {"text": {"type": "string"}}}}
    package(tmp_path, SERVICE, config("MindSpore", apis=[{"url": "/", "request": request}]))
    with serving(tmp_path) as server:
        content = server.client.get("/openapi.json").json()["paths"]["/"]["post"]["requestBody"]["content"]
        assert list(content) == ["multipart/form-data"]


BROKEN = [
    ("comments", '// mine\n{"model_type": "PyTorch", /* x */ "model_algorithm": "http://a"}', "not plain JSON"),
    ("stray commas", '{"model_type": "PyTorch", "model_algorithm": "a", "apis": [],}', "not plain JSON"),
    ("tabs in strings", '{"model_type": "PyTorch", "model_algorithm": "a\tb"}', "not plain JSON"),
    ("a byte order mark", '\ufeff{"model_type": "PyTorch"}', "no model_algorithm"),
    ("cut short", '{"model_type": "PyTorch", "apis": [', "is no JSON"),
    ("a list", "[]", "holds no JSON object"),
    ("empty", "", "is no JSON"),
    ("an unknown type", '{"model_type": "Torch", "model_algorithm": "a"}', "model_type 'Torch' is none of TensorFlow"),
    ("no type", '{"model_algorithm": "a"}', "no model_type"),
    ("a request without apis", '{"model_type": "PyTorch", "model_algorithm": "a", "request": {}}', "outside apis"),
    ("odd parts", '{"model_type": 3, "apis": "x", "dependencies": {"a": 1}, "model_algorithm": []}', "model_type '3'"),
    ("a response inside the request", '{"model_type": "PyTorch", "model_algorithm": "a", "apis": [{"request": '
     '{"Content-type": "x", "data": {"type": 1, "properties": 3}, "response": {"data": {}}}}]}', "inside the request"),
    ("none", None, "there is no config.json"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "warning"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_config_warns_and_runs(tmp_path: Path, text: str | None, warning: str) -> None:
    package(tmp_path, SERVICE, text)
    assert any(warning in problem for problem in inspected(tmp_path)["problems"])
    if warning in ("is no JSON", "inside the request", "there is no config.json"):
        with serving(tmp_path) as server:
            server.wait_log(f"warning: .*{warning}")
            assert server.client.post("/", json={"a": 1}).json() == {"a": 1}
            assert server.client.get("/openapi.json").status_code == 200


def test_what_a_package_without_a_script_needs(tmp_path: Path) -> None:
    package(tmp_path / "image", config=config("Image"))
    done = panglot("serve", str(tmp_path / "image"), "--port", "0")
    assert (done.returncode, "model_type Image names a container image" in done.stderr) == (3, True)
    package(tmp_path / "caffe", config=config("Caffe"))
    done = panglot("serve", str(tmp_path / "caffe"), "--port", "0")
    assert done.returncode == 3
    assert "Caffe has no default service (fix: add a customize_service.py)" in done.stderr
    package(tmp_path / "plain", config=config("PyTorch"), model__py="def predict(request):\n    return 1\n")
    assert inspected(tmp_path / "plain")["dialect"] == "plain"
    package(tmp_path / "other", config={"model_type": "bert", "architectures": []})
    done = panglot("serve", str(tmp_path / "other"), "--port", "0")
    assert (done.returncode, "there is nothing to serve" in done.stderr) == (3, True)


@pytest.mark.document("modelarts.01", "modelarts.02")
@pytest.mark.parametrize("place", ["", "model", "model/1", "1"])
def test_where_the_files_may_lie(tmp_path: Path, place: str) -> None:
    folder = package(tmp_path / "mine" / place, SERVICE, config("PyTorch"), w__pth=b"")
    (tmp_path / "mine" / "panglot.toml").write_text("queue = 7\n")
    facts = inspected(tmp_path / "mine")
    assert (facts["package"], facts["dialect"], facts["folder"]) == ("mine", "modelarts", str(folder))
    assert facts["settings"]["queue"] == {"value": 7, "source": "panglot.toml", "scope": "model"}
    assert facts["settings"]["timeout"] == {"value": 40.0, "source": "the dialect", "scope": "model"}
    assert facts["settings"]["max_body"] == {"value": 12 * 1024 * 1024, "source": "the dialect", "scope": "model"}
    assert facts["routes"] == ["POST /", "GET /health (public)"]
    assert inspected(folder / "customize_service.py")["folder"] == str(folder)


def test_a_script_of_another_name_is_known_by_its_imports(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SERVICE)
    facts = inspected(tmp_path / "mine.py")
    assert (facts["dialect"], facts["why"]) == ("modelarts", ["mine.py:4 defines class Service(SingleNodeService)"])


MODEL_PATHS = [
    ("TensorFlow", ("saved_model.pb",), "", "the package's folder (always so for TensorFlow)"),
    ("TensorFlow", ("1/saved_model.pb", "2/saved_model.pb"), "2", "2/ (the highest version folder that has a saved_"),
    ("MindSpore", ("a.ckpt",), "", "the package's folder (always so for MindSpore)"),
    ("Caffe", ("deploy.prototxt",), "", "the package's folder (always so for Caffe)"),
    ("PyTorch", ("b.pt", "c.pth", "a.pt"), "c.pth", "c.pth (chosen before a.pt, b.pt: by depth, then ending, then "),
    ("PyTorch", ("weights/best.pt",), "weights/best.pt", "weights/best.pt (the only weights file)"),
    ("PyTorch", (), "/", "the package's folder: it has no file ending in .pth, .pt"),
    ("Scikit_Learn", ("model.m", "other.pkl"), "model.m", "model.m (chosen before other.pkl"),
    ("Spark_MLlib", (), "spark_model", "spark_model (the folder Spark_MLlib models are saved in)"),
]


@pytest.mark.document("modelarts.14")
@pytest.mark.parametrize(("engine", "files", "path", "reason"), MODEL_PATHS)
def test_which_file_or_folder_is_model_path(
    tmp_path: Path, engine: str, files: tuple[str, ...], path: str, reason: str
) -> None:
    from panglot.dialects.modelarts import engines

    package(tmp_path, SERVICE, config(engine))
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    model = engines.model(engines.BY_NAME[engine], tmp_path, {})
    assert model.name == "serve"
    assert model.path == (f"{tmp_path}/{path}".rstrip("/") if path != "/" else f"{tmp_path}/")
    assert model.reason.startswith(reason)


def test_the_platforms_own_start_arguments_are_read(tmp_path: Path) -> None:
    package(tmp_path, SERVICE, config("PyTorch"), a__pth=b"", b__pth=b"")
    facts = inspected(tmp_path, env={"MODEL_SERVER_ARGS": "--model_path b.pth --model_name=mine"})
    assert facts["facts"]["model_name"] == ["mine"]
    assert facts["facts"]["model_path"] == [f"{tmp_path}/b.pth (from MODEL_SERVER_ARGS)"]
