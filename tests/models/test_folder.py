"""`--models DIR`: a model for each folder in it, versions, and Triton's layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.models import all_of, write_model
from support.server import panglot, serving

MANY = 20
CONFIG = """
# Triton's text form
name: "sums"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
output { name: 'y', data_type: TYPE_STRING; dims: [1] }
instance_group [ { count: 2 kind: KIND_CPU } ]
dynamic_batching { max_queue_delay_microseconds: 1500 }
parameters: { key: "k" value: { string_value: "v" } }
version_policy: { latest { num_versions: 2 } }
"""


@pytest.mark.rest("twenty models")
def test_twenty_models_are_ready_in_one_server(tmp_path: Path) -> None:
    names = [f"m{number:02}" for number in range(MANY)]
    for name in names:
        write_model(tmp_path / name)
    (tmp_path / "README.md").write_text("not a model")
    (tmp_path / ".hidden").mkdir()
    with serving(all_of(tmp_path), "--default", "m07", ready=False) as server:
        server.wait_ready(120)
        assert len(server.workers()) == MANY
        for name in names:
            assert server.client.post(f"/models/{name}/predict", json=1).json() == {"model": name, "got": 1}
        assert server.predict(2).json()["model"] == "m07"


def test_the_newest_version_answers_unless_another_is_asked_for(tmp_path: Path) -> None:
    for version in ("2", "10"):
        write_model(tmp_path / "echo" / version, says=f"v{version}")
    (tmp_path / "panglot.toml").write_text("max_body = 200\nheader_timeout = 5\n")
    (tmp_path / "echo" / "2" / "panglot.toml").write_text("max_body = 100\nkeep_alive = 3\n")
    with serving(all_of(tmp_path)) as server:
        assert server.client.post("/models/echo/predict", json=1).json()["model"] == "v10"
        assert server.client.post("/models/echo/versions/2/predict", json=1).json()["model"] == "v2"
        assert server.client.post("/models/echo/versions/3/predict", json=1).status_code == 404
        # Without --default there is none, even though there is only one.
        assert server.predict(1).status_code == 404
        # A model's own settings win over those of the folder.
        large = b"[" + b"1," * 70 + b"1]"
        assert server.client.post("/models/echo/versions/2/predict", content=large).status_code == 413
        assert server.client.post("/models/echo/predict", content=large).status_code == 200
        server.wait_log("keep_alive in")
        server.wait_log("is for the whole server and has no effect here")


def test_a_model_that_fails_ends_the_server_or_is_left_out(tmp_path: Path) -> None:
    write_model(tmp_path / "good")
    write_model(tmp_path / "bad", body="raise ValueError('no weights')\n\ndef predict(x): pass\n")
    (tmp_path / "empty").mkdir()
    done = panglot("serve", "--models", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "empty: there is nothing to serve" in done.stderr
    (tmp_path / "empty").rmdir()
    done = panglot("serve", "--models", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "no weights" in done.stderr
    (tmp_path / "empty").mkdir()
    with serving(all_of(tmp_path), "--partial") as server:
        assert server.client.post("/models/good/predict", json=1).status_code == 200
        assert server.client.post("/models/bad/predict", json=1).status_code == 404
        server.wait_log("bad is not served: .*no weights")
        server.wait_log("empty is not served: ")


def test_tensors_that_a_configuration_names_are_those_of_the_model(tmp_path: Path) -> None:
    script = "def predict(x):\n    return {'y': [[sum(row)] for row in x['x'].tolist()]}\n"
    write_model(tmp_path / "sums" / "1", body=script)
    text = CONFIG.replace("TYPE_STRING", "TYPE_FP64").replace("[ -1, 3 ]", "[ 3 ]").replace("count: 2", "count: 1")
    (tmp_path / "sums" / "config.pbtxt").write_text(text)
    with serving(all_of(tmp_path)) as server:
        about = server.client.get("/v2/models/sums").json()
        assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
        assert about["outputs"] == [{"name": "y", "datatype": "FP64", "shape": [-1, 1]}]
        config = server.client.get("/v2/models/sums/config").json()
        assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [3]}]
        tensor = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
        answer = server.client.post("/v2/models/sums/infer", json={"inputs": [tensor]})
        assert answer.status_code == 200, answer.text
        assert "15" in answer.text


def inspected(folder: Path) -> dict[str, dict[str, object]]:
    done = panglot("inspect", "--models", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    return {f"{one['model']}/{one['version']}": one for one in json.loads(done.stdout)["models"]}


def test_triton_s_layout_and_configuration(tmp_path: Path) -> None:
    for version in ("1", "2", "3"):
        write_model(tmp_path / "sums" / version)
    (tmp_path / "sums" / "config.pbtxt").write_text(CONFIG)
    found = inspected(tmp_path)
    assert list(found) == ["sums/2", "sums/3"]
    assert {one["workers"] for one in found.values()} == {2}
    (tmp_path / "sums" / "config.pbtxt").write_text('name: "sums"\nversion_policy: { specific { versions: [1, 3] } }')
    assert list(inspected(tmp_path)) == ["sums/1", "sums/3"]
    (tmp_path / "sums" / "config.pbtxt").write_text("version_policy { all {} }")
    assert len(inspected(tmp_path)) == 3
    (tmp_path / "sums" / "config.pbtxt").write_text("")
    assert list(inspected(tmp_path)) == ["sums/3"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('name: "other"', 0, "name is 'other', and the folder is 'sums' (fix: name: \"sums\")"),
        (
            "max_batch_sise: 8",
            1,
            "'max_batch_sise' is no field of a model's configuration (fix: did you mean max_",
        ),
        ("max_batch_size: 8.5", 1, "max_batch_size must be a whole number, not 8.5"),
        ('name: sums\ninput [ { name: "x" ', 2, "'}' is missing"),
        ("\n\ninput [ { dims: [1] } ]", 3, "a tensor needs a name and a data_type such as TYPE_FP32"),
        ("name = 3", 1, "unexpected '= 3'"),
        ("name 3", 1, "expected ':' behind name"),
        ("ensemble_scheduling { }", 0, "an ensemble needs steps"),
        ("version_policy { specific { versions: 7 } }", 0, "version_policy names version 7, and there is none"),
    ],
)
def test_a_configuration_that_is_wrong(tmp_path: Path, text: str, line: int, words: str) -> None:
    write_model(tmp_path / "sums" / "1")
    config = tmp_path / "sums" / "config.pbtxt"
    config.write_text(text)
    done = panglot("inspect", "--models", str(tmp_path))
    assert done.returncode == 3
    assert words in done.stderr
    assert (f"config.pbtxt:{line}: " if line else "config.pbtxt: ") in done.stderr
    assert done.stderr.count("\n") == 1
