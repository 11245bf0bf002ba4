"""What is a truss, decided without running it, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from panglot.packages import requirements
from support.server import PACKAGES, panglot

MODEL = """class Model:
    def __init__(self, **kwargs):
        print("was run")

    def predict(self, model_input):
        return model_input
"""
BARE = "class Model:\n    def predict(self, model_input):\n        return model_input\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def refused(path: Path) -> str:
    """The line by which a package is refused before anything of it runs."""
    with pytest.raises(StartError) as error:
        dialects.discover(path)
    return str(error.value)


IS_ONE = {
    "keyword arguments": ("runtime: {}\n", MODEL),
    "an empty config": ("", MODEL),
    "a method load": ("", BARE + "    def load(self):\n        pass\n"),
    "a name": ("model_name: Mine\n", BARE),
    "a list of requirements": ("requirements: [torch]\n", BARE),
    "resources": ("resources: {cpu: '1'}\n", BARE),
    "secrets": ("secrets: {token: null}\n", BARE),
    "metadata": ("model_metadata: {tags: [a]}\n", BARE),
    "a class from elsewhere": ("model_name: Mine\n", "from packed import Model\n"),
    "a base class": ("model_name: Mine\n", "from packed import Base\n\n\nclass Model(Base):\n    pass\n"),
    "unknown keys": ("model_name: Mine\nengine_builder: {many: [things]}\n", BARE),
    "async": ("model_name: Mine\n", BARE.replace("def predict", "async def predict")),
}


@pytest.mark.document("truss.01")
@pytest.mark.parametrize("name", IS_ONE)
def test_a_config_beside_a_model_is_a_truss(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, script = IS_ONE[name]
    folder = write(tmp_path, config_yaml=config, model__model_py=script)
    for path in (folder, folder / "config.yaml", folder / "model" / "model.py"):
        package = dialects.discover(path)
        assert (package.dialect, package.folder, package.script) == ("truss", folder, folder / "model" / "model.py")
    assert "was run" not in capsys.readouterr().out


IS_NONE = {
    "no config": {"model__model_py": MODEL},
    "a model at the root": {"config_yaml": "model_name: Mine\n", "model_py": MODEL},
    "no class": {"config_yaml": "model_name: Mine\n", "model__model_py": "def predict(x):\n    return x\n"},
    "no sign of Truss": {"config_yaml": "threshold: 1\n", "model__model_py": BARE},
    "a config of something else": {"config_yaml": "docker_server: {}\n", "model_py": BARE},
}


@pytest.mark.parametrize("name", IS_NONE)
def test_others_are_none(name: str, tmp_path: Path) -> None:
    write(tmp_path, **IS_NONE[name])
    assert dialects._detect(dialects.find("truss"), tmp_path, {}) is None


REFUSED = {
    "truss_websocket": "model/model.py:5: websockets are not served: Panglot speaks HTTP and gRPC "
    "(fix: give it def predict(self, model_input))",
    "truss_arguments": "model/model.py:5: predict(self, model_input, request, more) cannot have more than two "
    "arguments besides self (fix: def predict(self, model_input, request: Request))",
    "truss_no_predict": "model/model.py:1: Model has no predict (fix: def predict(self, model_input))",
    "truss_chain": "hello.py:6: chains of truss_chains are not served: each Chainlet is a server of its own "
    "(fix: serve each step as a truss with a model/model.py)",
    "truss_docker": "config.yaml:4: a docker_server is another program in an image, which Panglot does not run "
    "(fix: serve a truss with a model/model.py)",
}


@pytest.mark.document("truss.08", "truss.33")
@pytest.mark.parametrize("name", REFUSED)
def test_a_package_that_cannot_work_is_refused_with_file_line_and_fix(name: str) -> None:
    assert refused(PACKAGES / "broken" / name).endswith(f"{name}/{REFUSED[name]}")


def test_a_refusal_ends_the_command_with_3() -> None:
    done = panglot("serve", str(PACKAGES / "broken" / "truss_websocket"), "--port", "0", seconds=60)
    assert done.returncode == 3
    assert "websockets are not served" in done.stderr


WRONG_CONFIGS = {
    "runtime: {predict_concurrency: 0}": "config.yaml:2: predict_concurrency must be a number from 1",
    "runtime: [1]": "config.yaml:2: runtime must be a mapping",
    "requirements: torch": "config.yaml:2: requirements must be a list",
    "model_class_name: [a]": "config.yaml:2: model_class_name must be a text",
    "a: 'b": "config.yaml:",
    "runtime: {transport: {kind: websocket}}": "config.yaml:2: websockets are not served",
    "runtime: {transport: {kind: grpc}}": "config.yaml:2: a gRPC server of the script is not served",
    "trt_llm: {build: {}}": "config.yaml:2: engines of trt_llm are built and served by Baseten's own image",
}


@pytest.mark.document("truss.33")
@pytest.mark.parametrize("line", WRONG_CONFIGS)
def test_a_config_that_is_wrong_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    write(tmp_path, config_yaml=f"model_name: Mine\n{line}\n", model__model_py=MODEL)
    assert WRONG_CONFIGS[line] in refused(tmp_path)


AT_THE_START = {
    "def predict(self, model_input, request): ...": "must have request as second argument (type annotated)",
    "def predict(self, request: Request, model_input): ...": "request must be second",
    "def predict(self, request: Request): ...\n    def preprocess(self, x): ...": "cannot only have the request",
    "def predict(self, x): ...\n    def postprocess(self, request: Request): ...": "`postprocess` method cannot only",
    "def predict(self, x): ...\n    def __init__(self, weights): ...": "the platform gives config, data_dir, secrets",
}


@pytest.mark.document("truss.08")
@pytest.mark.parametrize("method", AT_THE_START)
def test_a_class_that_breaks_the_rules_ends_the_server_at_its_start(method: str, tmp_path: Path) -> None:
    script = f"from starlette.requests import Request\n\n\nclass Model:\n    {method}\n"
    write(tmp_path, config_yaml="model_name: Mine\n", model__model_py=script)
    done = panglot("serve", str(tmp_path), "--port", "0", seconds=60)
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert "model/model.py:" in last
    assert AT_THE_START[method] in last
    assert "(fix: " in last


@pytest.mark.document("truss.34")
def test_what_only_the_platform_has_is_told_in_one_line_each() -> None:
    package = dialects.discover(PACKAGES / "truss_folders")
    problems = list(package.problems)
    for start in (
        "config.yaml:9 wants system packages: apt-get install ffmpeg",
        "config.yaml:10 has build_commands, which are not run here",
        "config.yaml:16 wants the secret hf_access_token: set TRUSS_SECRET_hf_access_token",
    ):
        assert any(problem.startswith(start) for problem in problems), problems
    assert requirements.commands(package) == [("-r", "requirements.txt")]
    assert package.options["example"] == {"kind": "json", "value": {"text": "hi"}}


@pytest.mark.document("truss.44")
def test_fixed_paths_of_the_platforms_images_are_found(tmp_path: Path) -> None:
    script = MODEL + '\n\nWEIGHTS = "/app/data/weights.bin"\nOTHER = "/apple"\n'
    write(tmp_path, config_yaml="", model__model_py=script)
    (path,) = dialects.discover(tmp_path).fixed_paths
    assert (path.text, path.file, path.line, path.root) == ("/app/data/weights.bin", "model/model.py", 9, "/app")
