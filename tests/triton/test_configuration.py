"""What a config.pbtxt says, and what becomes of it: shapes, warm-up, waiting, versions, figures, environments."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

from panglot import dialects
from panglot.dialects.triton import environments
from panglot.errors import StartError
from panglot.packages.config_pbtxt import triton_config, triton_fields
from support.environments import python_with
from support.models import all_of
from support.server import Server, serving, wait_until

HERE = Path(__file__).parent
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def pack_environment(archive: Path, folder: Path) -> None:
    """An archive of the shape that conda-pack makes: an interpreter, and modules that only it finds."""
    subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(folder)], check=True, timeout=120)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "only_there.py").write_text('WORD = "only there"\n')
    # numpy, which every script for Triton needs, is not installed again.
    (packages / "beside.pth").write_text(str(Path(numpy.__file__).parents[1]) + "\n")
    with tarfile.open(archive, "w:gz") as packed:
        for entry in sorted(folder.iterdir()):
            packed.add(entry, entry.name)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(HERE / "configured", folder, dirs_exist_ok=True)
    pack_environment(folder / "packed" / "environment.tar.gz", tmp_path_factory.mktemp("made") / "environment")
    with serving(all_of(folder), env={"XDG_CACHE_HOME": str(cache)}, ready=False) as started:
        started.wait_ready()
        yield started


def infer(server: Server, model: str, **inputs: tuple[str, list[int], list[object]]) -> dict[str, object]:
    body = [{"name": n, "datatype": t, "shape": s, "data": d} for n, (t, s, d) in inputs.items()]
    answer = server.client.post(f"/v2/models/{model}/infer", json={"inputs": body})
    assert answer.status_code == 200, answer.text
    outputs: dict[str, object] = {output["name"]: output for output in answer.json()["outputs"]}
    return outputs


def test_a_model_has_shapes_of_its_own(server: Server) -> None:
    square, scalar = ("FP32", [2, 4], [1.0] * 8), ("INT32", [2, 1], [7, 8])
    outputs = infer(server, "shaped", SQUARE=square, SCALAR=scalar, FREE=("INT64", [2, 3, 2], [0] * 12))
    expected = {"SQUARE": [2, 2, 2], "SCALAR": [2], "FREE": [2, 2, 3]}
    assert json.loads(outputs["SHAPES"]["data"][0]) == expected  # type: ignore[index]
    assert outputs["TWICE"]["shape"] == [2, 4]  # type: ignore[index]
    assert (outputs["NUMBER"]["shape"], outputs["NUMBER"]["data"]) == ([2, 1], [7, 8])  # type: ignore[index]
    answer = server.client.post("/models/shaped/predict", json={"SQUARE": [[1, 2, 3, 4]], "SCALAR": [[5]]})
    assert (answer.json()["TWICE"], answer.json()["NUMBER"]) == ([[2, 4, 6, 8]], [[5]])
    wrong = server.client.post("/models/shaped/predict", json={"SQUARE": [[[1, 2], [3, 4]]], "SCALAR": [[5]]})
    assert "has the shape [1, 2, 2], and the model takes [-1, 4]" in wrong.text


def test_a_model_is_warm_before_it_is_ready(server: Server) -> None:
    # They may be heard after it is ready.
    server.wait_count("given {", 4)
    lines = [line for line in server.lines if "given {" in line]
    assert ['"SQUARE": [1, 2, 2]' in line for line in lines[:4]] == [True] * 4
    assert ["[0.0, 0.0, 0.0, 0.0]" in line for line in lines[:4]] == [True, True, False, False]
    assert ["[1.0, 2.0, 3.0, 4.0]" in line for line in lines[:4]] == [False, False, True, True]


def test_the_policy_chooses_the_versions(server: Server) -> None:
    """The newest version would fail to load. A model that is served alone has the newest of those that are allowed."""
    assert server.client.get("/v2/models/shaped").json()["versions"] == ["1"]
    assert dialects.discover(HERE / "configured" / "shaped").options["version"] == "1"


def test_figures_of_a_model_are_shown(server: Server) -> None:
    before = server.metric("shaped_calls", version="1")
    infer(server, "shaped", SQUARE=("FP32", [1, 4], [1.0] * 4), SCALAR=("INT32", [1, 1], [42]))
    wait_until(lambda: server.metric("shaped_calls", version="1") == before + 1)
    wait_until(lambda: server.metric("shaped_last") == 42)
    text = server.client.get("/metrics").text
    assert "# TYPE shaped_sizes histogram" in text
    assert 'le="+Inf"' in next(
        line for line in text.splitlines() if line.startswith("shaped_sizes_bucket") and "+" in line
    )
    assert server.metric("shaped_sizes_count") >= 1
    server.wait_log("the script's figure 'panglot_requests_total' is not shown")


def test_a_request_that_waits_too_long_is_refused(server: Server) -> None:
    mark = len(server.lines)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(server.client.post, "/models/waiting/predict", json={"NAP": [[3.0]]})
        server.wait_log("begins", after=mark)
        late = server.client.post("/models/waiting/predict", json={"NAP": [[0.0]]})
        assert (late.status_code, late.json()["error"]["code"]) == (503, "queue_timeout")
        assert "no worker was free within 0.1 s" in late.text
        assert first.result().status_code == 200


def test_fields_without_effect_are_warned_of_with_their_lines(server: Server) -> None:
    for line in (
        "config.pbtxt:6: dynamic_batching.preferred_batch_size has no effect here",
        "config.pbtxt:7: dynamic_batching.default_queue_policy.timeout_action: DELAY has no effect here",
        "config.pbtxt:9: optimization has no effect here",
        "config.pbtxt:10: response_cache has no effect here: answers are not cached",
    ):
        server.wait_log(re.escape(line))


def test_a_model_runs_in_its_packed_environment(server: Server, cache: Path) -> None:
    word, interpreter = infer(server, "packed")["SAID"]["data"]  # type: ignore[index]
    assert word == "only there"
    assert Path(interpreter).is_relative_to(cache)
    # By its digest: whoever asks for it again finds it.
    unpacked = Path(interpreter).parents[1]
    about = unpacked.stat().st_mtime_ns
    assert len(unpacked.name) == 64
    assert (Path(interpreter).exists(), unpacked.stat().st_mtime_ns) == (True, about)


# Without a server


def written(folder: Path, environment: str) -> environments.EnvironmentPath:
    (folder / "1").mkdir(exist_ok=True)
    (folder / "1" / "model.py").write_text(MODEL)
    value = f'parameters {{\n  key: "EXECUTION_ENV_PATH"\n  value {{ string_value: "{environment}" }}\n}}\n'
    (folder / "config.pbtxt").write_text('output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }\n' + value)
    named = environments.named(triton_config.read(folder / "config.pbtxt"), folder / "config.pbtxt")
    assert named is not None
    return named


def test_an_environment_may_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "own" / "bin").mkdir(parents=True)
    (tmp_path / "own" / "bin" / "python3").touch()
    for text in ("own", "$$TRITON_MODEL_DIRECTORY/own", str(tmp_path / "own")):
        assert environments.interpreter(written(tmp_path, text)) == str(tmp_path / "own" / "bin" / "python3")


@pytest.mark.parametrize(
    ("name", "link", "said"),
    [
        ("../outside", "", "leads outside of this archive"),
        ("bin/python", "/usr/bin/python3", "leads outside of this archive"),
        ("bin/python", "../../elsewhere", "leads outside of this archive"),
        ("lib/module.py", "", "has no bin/python"),
    ],
)
def test_a_hostile_environment_ends_the_start(
    name: str, link: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as packed:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
        packed.addfile(entry, io.BytesIO())
    with pytest.raises(StartError, match=said):
        environments.interpreter(written(tmp_path, "packed.tar.gz"))


@pytest.mark.parametrize(
    ("environment", "said"),
    [("missing.tar.gz", "missing.tar.gz does not exist"), ("s3://bucket/environment.tar.gz", "of this machine")],
)
def test_an_environment_that_is_not_there_ends_the_start_with_its_line(
    environment: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(StartError, match=said) as raised:
        environments.interpreter(written(tmp_path, environment))
    assert (raised.value.file, raised.value.line) == (str(tmp_path / "config.pbtxt"), 3)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("\ninput { name: 'X' datatype: TYPE_FP32 }", "'datatype' is no field of input", 2),
        ("dynamic_batching {\n  max_queue_delay: 3\n}", "no field of dynamic_batching", 2),
        ("\n\nmodel_warmup { inputs { key: 'X' value { zeros: true } } }", "no field of model_warmup.inputs.value", 3),
        ("input {\n name: 'X' data_type: TYPE_FP32 dims: [ 4 ]\n reshape { shape: [ 3 ] } }", "the reshape", 3),
    ],
)
def test_a_field_that_does_not_exist_ends_the_start_with_its_line(
    text: str, said: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "config.pbtxt"
    path.write_text(text)
    with pytest.raises(StartError, match=said) as raised:
        triton_config.tensors(triton_config.read(path), path)
    assert raised.value.line == line


def test_every_field_is_below_one_that_is_known() -> None:
    for field in triton_fields.FIELDS.values():
        above = field.path.rpartition(".")[0]
        assert not above or above in triton_fields.FIELDS, field.path


@pytest.mark.timeout(600)
def test_every_field_of_nvidias_description_is_known(tmp_path: Path) -> None:
    python = python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(HERE / "clients" / "fields.py")]
    written = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    assert len(written) > 150
    path = tmp_path / "config.pbtxt"
    for name, text in written.items():
        path.write_text(text)
        triton_fields.warnings(triton_config.read(path), path, has_script=True)
        # Entries of maps, and what is below a field without effect, have the row of the map.
        above = name.partition(".key")[0].partition(".value")[0]
        assert above in triton_fields.FIELDS, name


def test_model_files_are_told_what_has_no_effect_on_them(tmp_path: Path) -> None:
    path = tmp_path / "config.pbtxt"
    path.write_text('max_batch_size: 2\ninput { name: "X" data_type: TYPE_FP32 dims: [ 1 ] optional: true }\n')
    said = triton_fields.warnings(triton_config.read(path), path, has_script=False)
    assert said == ("config.pbtxt:2: input.optional has no effect here on a model file",)
