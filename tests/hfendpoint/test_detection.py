"""What is a package of Hugging Face Inference Endpoints, decided without running it, and what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from panglot import dialects
from panglot.errors import StartError
from support.server import PACKAGES, panglot

HANDLER = """class EndpointHandler:
    def __init__(self, path=""):
        print("was run")

    def __call__(self, data):
        return data
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def refused(path: Path) -> str:
    """The line by which a package is refused before anything of it runs."""
    with pytest.raises(StartError) as error:
        dialects.discover(path)
    return str(error.value)


def failed(path: Path) -> str:
    """What a server says that ends because of its package."""
    done = panglot("serve", str(path), "--port", "0", seconds=60)
    assert done.returncode == 3, done.stderr
    return done.stderr


IS_ONE = {
    "a class": ({"handler__py": HANDLER}, "handler.py:1 defines class EndpointHandler"),
    "imported": (
        {"handler__py": "from model import EndpointHandler\n", "model__py": HANDLER},
        "handler.py:1 brings in EndpointHandler",
    ),
    "by assignment": (
        {"handler__py": HANDLER.replace("EndpointHandler", "Own") + "\nEndpointHandler = Own\n"},
        "handler.py:8 brings in EndpointHandler",
    ),
    "over a base class": (
        {"handler__py": "from base import Base\nclass EndpointHandler(Base): ...\n"},
        "handler.py:2 defines class EndpointHandler",
    ),
    "legacy": (
        {"pipeline__py": HANDLER.replace("EndpointHandler", "PreTrainedPipeline")},
        "pipeline.py:1 defines class PreTrainedPipeline",
    ),
    "beside a model": (
        {
            "handler__py": HANDLER,
            "config__json": '{"model_type": "bert"}',
            "model__safetensors": "x",
            "model__py": "def predict(request): ...\n",
        },
        "handler.py:1 defines class EndpointHandler",
    ),
}


@pytest.mark.document("hfendpoint.01")
@pytest.mark.parametrize("name", IS_ONE)
def test_is_one(name: str, tmp_path: Path) -> None:
    files, reason = IS_ONE[name]
    package = dialects.discover(write(tmp_path / "own", **files))
    assert (package.dialect, package.name, package.reasons[0]) == ("hfendpoint", "own", reason)


def test_inspect_runs_nothing_and_shows_the_platforms_routes(tmp_path: Path) -> None:
    done = panglot("inspect", str(write(tmp_path / "own", handler__py=HANDLER)), "--json")
    assert "was run" not in done.stdout + done.stderr
    routes = set(json.loads(done.stdout)["routes"])
    assert routes == {"POST /", "POST /predict", "GET / (public)", "GET /health (public)"}


def test_a_handler_of_another_name_is_served_by_its_path(tmp_path: Path) -> None:
    write(tmp_path, serve_me__py=HANDLER)
    package = dialects.discover(tmp_path / "serve_me.py")
    assert (package.dialect, package.entry) == ("hfendpoint", "EndpointHandler.__call__")


@pytest.mark.document("hfendpoint.02")
def test_the_platforms_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DEFAULT_PIPELINE_NAME", "inference.py")
    assert dialects.discover(write(tmp_path / "own", inference__py=HANDLER)).dialect == "hfendpoint"


IS_NONE = {
    "TorchServe": "from ts.torch_handler.base_handler import BaseHandler\nclass Own(BaseHandler): ...\n",
    "RunPod": "import runpod\ndef handler(job): ...\nrunpod.serverless.start({'handler': handler})\n",
    "Lambda": "def lambda_handler(event, context): ...\n",
}


@pytest.mark.document("hfendpoint.07")
@pytest.mark.parametrize("name", IS_NONE)
def test_other_handlers_are_none(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "own", handler__py=IS_NONE[name])
    with pytest.raises(StartError, match="hfendpoint needs handler.py with class EndpointHandler"):
        dialects.discover(folder, "hfendpoint")


@pytest.mark.document("hfendpoint.06")
def test_with_a_handler_a_pipeline_is_an_ordinary_module(tmp_path: Path) -> None:
    legacy = HANDLER.replace("EndpointHandler", "PreTrainedPipeline")
    package = dialects.discover(write(tmp_path / "own", handler__py=HANDLER, pipeline__py=legacy))
    assert package.script.name == "handler.py"


# What is wrong is said at the start, with file, line and fix


WRONG = {
    "without __call__": (
        "class EndpointHandler:\n    def __init__(self, path): ...\n",
        ("handler.py:1", "EndpointHandler has no __call__", "def __call__(self, data)"),
    ),
    "without __init__": (
        "class EndpointHandler:\n    def __call__(self, data): ...\n",
        ("handler.py:1", "EndpointHandler has no __init__", 'def __init__(self, path="")'),
    ),
    "__init__ without an argument": (
        "class EndpointHandler:\n    def __init__(self): ...\n    def __call__(self, data): ...\n",
        ("handler.py:2", "must take one argument besides self", 'def __init__(self, path="")'),
    ),
    "__call__ with two arguments": (
        "class EndpointHandler:\n    def __init__(self, path): ...\n    def __call__(self, inputs, parameters): ...\n",
        ("handler.py:3", "must take one argument besides self", "def __call__(self, data)"),
    ),
    "a syntax error": ("class EndpointHandler:\n    def __init__(self, path)\n", ("handler.py:2", "syntax error")),
}
FAILS = {
    "a missing package": (
        "import transformers_of_mine\n" + HANDLER,
        ("handler.py:1", "the package 'transformers_of_mine' is not installed"),
    ),
    "a constructor that raises": (
        HANDLER.replace('print("was run")', 'raise OSError("no weights in " + path)'),
        ("handler.py:3", "constructing EndpointHandler failed: OSError: no weights in"),
    ),
    "no class": ("EndpointHandler = 5\n", ("handler.py", "there is no class EndpointHandler in it")),
    "called wrongly through a base": (
        "class Base:\n    def __init__(self, path): ...\n    def __call__(self): ...\n"
        "class EndpointHandler(Base): ...\n",
        ("handler.py:3", "must take one argument besides self", "def __call__(self, data)"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_package_is_refused_before_it_runs_with_file_line_and_fix(name: str, tmp_path: Path) -> None:
    script, expected = WRONG[name]
    said = refused(write(tmp_path / "own", handler__py=script))
    assert [part for part in expected if part not in said] == [], said


@pytest.mark.document("hfendpoint.11")
@pytest.mark.parametrize("name", FAILS)
def test_a_handler_that_cannot_be_made_ends_the_server_with_file_line_and_fix(name: str, tmp_path: Path) -> None:
    script, expected = FAILS[name]
    said = failed(write(tmp_path / "own", handler__py=script))
    assert [part for part in expected if part not in said] == [], said


def test_a_wrong_class_in_a_sibling_is_shown_there(tmp_path: Path) -> None:
    model = "class EndpointHandler:\n    def __init__(self, path): ...\n"
    said = refused(write(tmp_path / "own", handler__py="from model import EndpointHandler\n", model__py=model))
    assert "model.py:1" in said
    assert "has no __call__" in said


# What the platform has and this machine may not


def test_weights_of_the_hub_and_the_need_of_a_gpu_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    script = (
        "import torch\nfrom transformers import AutoModel\n"
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "if device.type != 'cuda':\n    raise ValueError('need to run on GPU')\n"
        + HANDLER.replace('print("was run")', 'self.model = AutoModel.from_pretrained("acme/large")')
    )
    folder = write(tmp_path / "own", handler__py=script)
    problems = "\n".join(dialects.discover(folder).problems)
    assert "handler.py:8 loads acme/large from the Hugging Face Hub" in problems
    assert "handler.py:4 refuses to run without a GPU" in problems
    (tmp_path / "hub" / "models--acme--large").mkdir(parents=True)
    assert "acme/large" not in "\n".join(dialects.discover(folder).problems)


@pytest.mark.document("hfendpoint.09")
def test_fixed_paths_of_the_platform_are_shown_with_the_fix() -> None:
    (path,) = dialects.discover(PACKAGES / "hfendpoint_repository").fixed_paths
    assert (path.file, path.line, path.text, path.root) == ("handler.py", 6, "/repository/labels.json", "/repository")
    said = failed(PACKAGES / "hfendpoint_repository")
    assert "--link-paths makes /repository lead to this package" in said


def test_the_models_card_gives_task_and_example(tmp_path: Path) -> None:
    package = dialects.discover(PACKAGES / "hfendpoint_sentiment")
    assert "README.md says pipeline_tag text-classification" in package.reasons
    assert package.options["api"]["example"] == {"kind": "json", "value": {"inputs": "I love you"}}
    broken = write(tmp_path / "own", handler__py=HANDLER, README__md="---\npipeline_tag: [\n---\n")
    assert dialects.discover(broken).facts["task"] == []
