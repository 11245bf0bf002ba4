"""Which files are a model's, what its configuration says, and what is said of a package that cannot work."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from panglot.dialects import discover
from panglot.errors import StartError
from panglot.settings.counts import WorkerCount
from support.server import PACKAGES, panglot, serving, wait_until
from support.torchserve import archive
from support.wheels import wheel

BROKEN = PACKAGES / "broken"
HANDLE = "def handle(data, context):\n    return ['here'] * len(data or ())\n"
BASE = "from ts.torch_handler.base_handler import BaseHandler\n\n\nclass Mine(BaseHandler):\n    pass\n"
NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n"


def folder_with(folder: Path, **files: str) -> Path:
    """A folder with these files; `_py` at the end of a name stands for `.py`, and so on."""
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / f"{stem}.{ending}").write_text(text)
    return folder


# Folders of sources


@pytest.mark.document("torchserve.39")
def test_a_manifest_is_made_of_what_a_folder_has(tmp_path: Path) -> None:
    package = discover(folder_with(tmp_path, handler_py=BASE, net_py=NET, weights_pth="w"))
    assert (package.dialect, package.script.name) == ("torchserve", "handler.py")
    assert package.options["manifest"]["model"] == {
        "modelName": tmp_path.name, "modelVersion": "1.0", "handler": "handler.py", "serializedFile": "weights.pth",
        "modelFile": "net.py",
    }  # fmt: skip
    (tmp_path / "model-config.yaml").write_text("batchSize: 2\n")
    assert discover(tmp_path).options["manifest"]["model"]["configFile"] == "model-config.yaml"
    # Of several scripts with a model's class, the one of the usual name.
    folder_with(tmp_path, model_py=NET)
    assert discover(tmp_path).options["manifest"]["model"]["modelFile"] == "model.py"


@pytest.mark.document("torchserve.39")
def test_several_weights_are_asked_for(tmp_path: Path) -> None:
    folder_with(tmp_path, one_pt="1", two_pt="2")
    (tmp_path / "README.md").write_text(
        "    torch-model-archiver --model-name m --version 1.0 --handler image_classifier\n"
    )
    package = discover(tmp_path)
    assert "the weights could be one.pt or two.pt: say --serialized-file one.pt" in package.problems
    chosen = discover(tmp_path, given={"serialized_file": "two.pt"})
    assert chosen.options["manifest"]["model"]["serializedFile"] == "two.pt"


@pytest.mark.document("torchserve.39")
def test_two_handlers_in_one_folder_are_told(tmp_path: Path) -> None:
    folder_with(tmp_path, one_py=BASE, two_py=BASE)
    with pytest.raises(StartError, match=r"one.py and two.py could all be the handler") as caught:
        discover(tmp_path)
    assert "name one: panglot serve" in caught.value.fix


@pytest.mark.document("torchserve.02", "torchserve.40")
def test_a_line_of_the_archiver_names_every_file(tmp_path: Path) -> None:
    line = """
```bash
torch-model-archiver -f --model-name adder --version=2.1 --model-file src/net.py --serialized-file src/weights.pt \\
    --handler src/adder.py --extra-files "src/words.json,src/more" -r needs.txt --config-file src/config.yaml
```
"""
    src = tmp_path / "src"
    (src / "more").mkdir(parents=True)
    (tmp_path / "README.md").write_text(line)
    script = """
import json
import os

from helper import WORD


def handle(data, context):
    if data is None:
        return None
    folder = context.system_properties["model_dir"]
    with open(os.path.join(folder, "words.json")) as file, open("deep.txt") as deep:
        return [[json.load(file), deep.read(), WORD, os.getcwd() == folder]]
"""
    folder_with(src, adder_py=script, net_py=NET, weights_pt="w", words_json='"words"', config_yaml="minWorkers: 1\n")
    folder_with(src / "more", deep_txt="deep", helper_py="WORD = 'helper'\n")
    package = discover(tmp_path)
    assert package.options["manifest"]["model"] == {
        "modelName": "adder", "modelVersion": "2.1", "handler": "src/adder.py", "serializedFile": "src/weights.pt",
        "modelFile": "src/net.py", "configFile": "src/config.yaml", "requirementsFile": "needs.txt",
    }  # fmt: skip
    assert "README.md:3 makes an archive with the handler src/adder.py" in package.reasons
    with serving(tmp_path) as server:
        answer = server.client.post("/predictions/adder/2.1", json=1)
        assert (answer.status_code, answer.json()) == (200, ["words", "deep", "helper", True]), server.log


@pytest.mark.document("torchserve.40")
def test_a_file_that_the_line_names_and_that_is_not_here_is_told(tmp_path: Path) -> None:
    folder_with(tmp_path, handler_py=BASE)
    line = "torch-model-archiver --model-name m --version 1.0 --handler handler.py --serialized-file ./resnet.pt"
    (tmp_path / "make.sh").write_text(line)
    assert "the file with the weights, resnet.pt, is not there" in discover(tmp_path).problems


# Handlers


@pytest.mark.document("torchserve.41")
@pytest.mark.parametrize(
    "handler", ["service", "service.py", "service:handle", "deep/er/service.py", "service.py:handle"]
)
def test_every_way_to_name_a_handler(tmp_path: Path, handler: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    folder_with(source, service_py=HANDLE)
    with serving(archive(source, tmp_path / "m.mar", handler)) as server:
        assert server.client.post("/predictions/m", content="x").text == "here"


WRONG = {
    "torchserve_import": ("the package 'no_such_library_of_ours' is not installed", "handler.py:1"),
    "torchserve_initialize": ("model.pt lies on a disk that is not here", "handler.py:6: running "),
    "torchserve_entry": ("the handler handler.py is no file of the model", "add handler.py"),
    "torchserve_manifest": ("MAR-INF/MANIFEST.json:2: not valid JSON",),
}


@pytest.mark.document("torchserve.42", "torchserve.59")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_package_is_told(name: str) -> None:
    done = panglot("serve", str(BROKEN / name), "--port", "0")
    told = " ".join(done.stderr.split())
    assert done.returncode == 3, told
    for words in WRONG[name]:
        assert words in told, told


@pytest.mark.document("torchserve.47")
def test_a_module_that_only_torchserve_has_is_named_by_its_distribution(tmp_path: Path) -> None:
    script = "from ts.torch_handler.vllm_handler import VLLMHandler\n\n\nclass Own(VLLMHandler):\n    pass\n"
    done = panglot("serve", str(folder_with(tmp_path, handler_py=script)), "--port", "0")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 3, done.stderr
    assert "handler.py:1: the module 'ts.torch_handler.vllm_handler' is not installed for" in last
    assert "-m pip install torchserve, or" in last


@pytest.mark.document("torchserve.59")
@pytest.mark.parametrize("ending", [".mar", ".tar.gz"])
def test_what_fails_in_an_archive_is_told_by_its_path_in_the_archive(tmp_path: Path, ending: str) -> None:
    """Where it was unpacked is a folder that users never see. It holds for the log of a server that runs, too."""
    source, env = tmp_path / "source", {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    source.mkdir()
    folder_with(source, handler_py="def handle(data, context):\n    1 / len(data or ())\n")
    made = archive(source, tmp_path / f"m{ending}", "handler.py")
    done = panglot("serve", str(made), "--port", "0", env=env)
    told = f"{made}/handler.py:2: running handle(None, context) failed: ZeroDivisionError: division by zero"
    assert (done.returncode, told in done.stderr) == (3, True), done.stderr
    assert f'File "{made}/handler.py", line 2, in handle' in done.stderr
    assert str(tmp_path / "cache") not in done.stderr
    folder_with(source, handler_py="def handle(data, context):\n    1 / (0 if data else 1)\n")
    with serving(archive(source, tmp_path / f"n{ending}", "handler.py"), env=env) as server:
        assert server.client.post("/predictions/n", content="x").status_code == 503
        wait_until(lambda: f'n{ending}/handler.py", line 2, in handle' in server.log, 30, lambda: server.log)
        assert str(tmp_path / "cache") not in server.log


@pytest.mark.document("torchserve.59")
def test_an_archive_is_shown_by_its_own_name(tmp_path: Path) -> None:
    made = archive(PACKAGES / "torchserve_echo", tmp_path / "m.mar", "handler.py")
    shown = panglot("inspect", str(made), env={"COLUMNS": "400"}).stdout
    assert f"{made}/handler.py" in shown
    shown = panglot("inspect", "--models", str(tmp_path), env={"COLUMNS": "400"}).stdout
    assert str(made) in shown


@pytest.mark.document("torchserve.59")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive at all"])
def test_an_archive_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.mar").write_bytes(content)
    done = panglot("serve", str(tmp_path / "m.mar"), "--port", "0")
    assert (done.returncode, "m.mar" in done.stderr, "Traceback" in done.stderr) == (3, True, False), done.stderr


@pytest.mark.document("torchserve.59")
def test_an_archive_without_a_manifest(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.mar", "w") as made:
        made.writestr("weights.pt", "w")
    done = panglot("serve", str(tmp_path / "m.mar"), "--port", "0")
    assert (done.returncode, "MANIFEST.json" in done.stderr) == (3, True), done.stderr


# Configuration


def defaults(folder: Path, config: str, properties: str = "") -> dict[str, Any]:
    folder_with(folder, handler_py=HANDLE, **{"model-config_yaml": config})
    (folder / "config.properties").write_text(properties)
    return dict(discover(folder).defaults)


@pytest.mark.document("torchserve.52", "torchserve.20", "torchserve.55")
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("other: 1\n", {"max_batch": 1, "timeout": 120.0}),
        ("batchSize: 4\nmaxBatchDelay: 50\n", {"max_batch": 4, "max_wait_ms": 50.0}),
        ("maxBatchDelay: 50\n", {"max_batch": 1}),
        ("responseTimeout: 7\nstartupTimeout: 9\n", {"timeout": 7.0, "load_timeout": 9.0}),
        ("jobQueueSize: 5\n", {"queue": 5}),
        ("minWorkers: 2\nmaxWorkers: 4\n", {"workers": WorkerCount(2, 4)}),
        ("minWorkers: 3\n", {"workers": WorkerCount(3, 3)}),
        ("deviceType: cpu\n", {"device": "cpu"}),
        ("deviceType: gpu\ndeviceIds: [1, 2]\n", {"device": "cuda:1,cuda:2"}),
    ],
)
def test_keys_of_a_models_configuration_are_settings(tmp_path: Path, config: str, expected: dict[str, Any]) -> None:
    found = defaults(tmp_path, config)
    assert {key: found[key] for key in expected} == expected
    assert ("max_wait_ms" in found) == ("max_wait_ms" in expected)


@pytest.mark.document("torchserve.52", "torchserve.24")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("batchSize: many", "batchSize must be a whole number"),
        ("continuousBatching: true", "continuous batching"),
        ("sequenceBatching: true", "sequences"),
        ("parallelType: pp", "torchrun"),
        ("a: [", "model-config.yaml"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(StartError) as caught:
        defaults(tmp_path, f"{line}\n")
    assert sentence in caught.value.sentence()


MODELS = 'models={"NAME": {"1.0": {"batchSize": 8, "responseTimeout": 6, "minWorkers": 2}}}\n'


@pytest.mark.document("torchserve.52", "torchserve.54")
def test_a_models_own_file_comes_before_that_of_the_server(tmp_path: Path) -> None:
    found = defaults(tmp_path, "batchSize: 4\n", MODELS.replace("NAME", tmp_path.name) + "service_envelope=json\n")
    assert (found["max_batch"], found["timeout"], found["workers"]) == (4, 6.0, WorkerCount(2, 2))


@pytest.mark.document("torchserve.54")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("inference_address=http://127.0.0.1:9411", {"port": 9411}),
        ("default_workers_per_model=3", {"workers": WorkerCount(3, 3)}),
        ("job_queue_size=9", {"queue": 9}),
        ("default_response_timeout=11", {"timeout": 11.0}),
        ("max_request_size=1000", {"max_body": 1000}),
        ("install_py_dep_per_model=true", {"install": True}),
        ("cors_allowed_origin=https://a.example", {"cors_origin": ("https://a.example",)}),
    ],
)
def test_keys_of_the_servers_configuration_are_settings(tmp_path: Path, line: str, expected: dict[str, Any]) -> None:
    found = defaults(tmp_path, "other: 1\n", f"# the server\n{line}\n")
    assert {key: found[key] for key in expected} == expected


@pytest.mark.document("torchserve.54")
def test_variables_fill_in_what_the_file_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TS_DEFAULT_RESPONSE_TIMEOUT", "13")
    monkeypatch.setenv("TS_JOB_QUEUE_SIZE", "14")
    assert defaults(tmp_path, "a: 1\n", "job_queue_size=9\n")["timeout"] == 120.0
    found = defaults(tmp_path, "a: 1\n", "job_queue_size=9\nenable_envvars_config=true\n")
    assert (found["timeout"], found["queue"]) == (13.0, 9)


@pytest.mark.document("torchserve.54")
def test_a_configuration_of_the_server_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="job_queue_size must be a whole number") as caught:
        defaults(tmp_path, "a: 1\n", "# one\njob_queue_size=many\n")
    assert caught.value.line == 2


@pytest.mark.document("torchserve.48", "torchserve.54")
def test_bodies_are_left_as_they_are_without_decode_input_request(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "torchserve_echo", tmp_path / "echo")
    (package / "config.properties").write_text("decode_input_request=false\n")
    with serving(package) as server:
        assert server.client.post("/predictions/echo", json=[1]).json() == {"body": ["bytearray", "[1]"]}
        answer = server.client.post("/predictions/echo", content="hi", headers={"content-type": "text/plain"})
        assert answer.json() == {"body": ["bytearray", "hi"]}


@pytest.mark.document("torchserve.58")
def test_requirements_of_the_archive_are_installed(tmp_path: Path) -> None:
    package = shutil.copytree(PACKAGES / "torchserve_rates", tmp_path / "rates")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}
    done = panglot("serve", str(package), "--port", "0", env=env)
    assert (done.returncode, "the package 'rates_of_exchange' is not installed" in done.stderr) == (3, True)
    assert "--install" in done.stderr
    wheel(package, "rates_of_exchange", "1.0", "def rate(name):\n    return len(name)\n")
    with serving(package, "--install", env=env) as server:
        for path in ("/predictions/rates", "/predictions/rates/3.2"):
            assert server.client.post(path, json={"to": "EUR"}).json() == {"rate": 3}
        assert server.client.post("/predictions/rates", json={}).status_code == 503
    (package / "config.properties").write_text("install_py_dep_per_model=true\n")
    with serving(package, env=env) as server:
        assert server.client.post("/predictions/rates", json={"to": "EURO"}).json() == {"rate": 4}
