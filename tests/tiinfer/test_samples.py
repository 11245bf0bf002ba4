"""The platform's own sample scripts, verbatim, on real frameworks, trained on real digits: answers are right."""

from __future__ import annotations

import base64
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from support import documents
from support.server import PACKAGES
from support.tiinfer import Heard, Served, last_line, ours

pytestmark = pytest.mark.timeout(300)

HERE = Path(__file__).parent
ENVIRONMENT = HERE / "environment"
QUESTIONS = 12
RIGHT = 10
"""How many of the questions must be answered right; these networks are small."""

SOURCES = ["ours", "verbatim"]


def source(name: str, package: str, blocks: dict[str, int], folder: Path) -> Path:
    """A copy of our own script, or the one of the platform's document, in a folder of its own."""
    target = folder / package
    target.mkdir()
    if name == "ours":
        shutil.copytree(PACKAGES / package, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        return target
    parts = documents.text("tiinfer").split("```")
    for file, block in blocks.items():
        (target / file).write_text(parts[block].lstrip("\n"), encoding="utf-8")
    return target


def train(script: str, *arguments: Path) -> None:
    done = subprocess.run([sys.executable, str(HERE / "training" / script), *map(str, arguments)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Weights for PyTorch, an unzipped Keras folder and a SavedModel folder, made side by side."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(PACKAGES / "tiinfer_torch", folder / "torch")
    with ThreadPoolExecutor() as threads:
        works = [
            threads.submit(train, "torch_digits.py", folder / "torch"),
            threads.submit(train, "tensorflow_digits.py", folder / "unzipped", folder / "saved"),
        ]
        for work in works:
            work.result()
    return {"torch": folder / "torch" / "model", "unzipped": folder / "unzipped", "saved": folder / "saved"}


@pytest.fixture(scope="session")
def questions() -> list[tuple[str, int]]:
    sys.path.insert(0, str(HERE / "training"))
    try:
        from digits import questions as found
    finally:
        sys.path.pop(0)
    return found(QUESTIONS)


def with_path(name: str) -> dict[str, str]:
    return {"PYTHONPATH": str(ENVIRONMENT / name)}


# PyTorch


@pytest.fixture(scope="module", params=SOURCES)
def torch_server(
    request: pytest.FixtureRequest, trained: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = source(
        request.param, "tiinfer_torch", {"model_service.py": 1, "net.py": 3}, tmp_path_factory.mktemp("torch")
    )
    shutil.copytree(trained["torch"], folder / "model", dirs_exist_ok=True)
    with ours(folder, env=with_path("torchvision_operators")) as server:
        yield server


@pytest.mark.document("tiinfer.05", "tiinfer.07", "tiinfer.11", "tiinfer.13", "tiinfer.20", "tiinfer.21", "tiinfer.24")
def test_pytorch_sample_is_right(torch_server: Served, questions: list[tuple[str, int]]) -> None:
    answers = [torch_server.ask({"images": [picture]}, "/v1/models/m:predict") for picture, _ in questions]
    assert all(answer.body["result"]["model_name"] == "mnist-classify" for answer in answers)
    assert right(answers, questions) >= RIGHT


@pytest.mark.document("tiinfer.16", "tiinfer.17")
def test_pytorch_sample_says_what_is_wrong_with_200(torch_server: Served) -> None:
    """Spec 4.1: an error in a dict passes the whole chain, and is a 200."""
    before = torch_server.metric("panglot_answer_errors_total", key="error")
    assert torch_server.ask({"text": "no images"}) == Heard(200, {"error": "invalid param"})
    assert torch_server.ask({"images": ["!!!!"]}) == Heard(200, {"error": "preprocess failed"})
    assert torch_server.metric("panglot_answer_errors_total", key="error") == before + 2


@pytest.mark.document("tiinfer.22")
def test_pytorch_samples_broken_handler_is_a_500(torch_server: Served) -> None:
    """Spec 4.2: no image at all fails in predict, whose own handler fails too."""
    assert torch_server.ask({"images": []}) == Heard(500, "inference internal error")


@pytest.mark.document("tiinfer.09")
def test_pytorch_sample_may_not_fetch_from_this_machine(torch_server: Served) -> None:
    """Spec 4.9 and the guard: an address that leads here looks like a refused connection."""
    address = torch_server.url("/picture.png")
    assert torch_server.ask({"images": [address]}) == Heard(200, {"error": "preprocess failed"})
    torch_server.wait_log("the script may not connect to 127.0.0.1")


@pytest.mark.document("tiinfer.18")
def test_pytorch_sample_takes_several_pictures(torch_server: Served, questions: list[tuple[str, int]]) -> None:
    """They go through the model together; the sample answers with the first."""
    pictures = [picture for picture, _ in questions[:5]]
    alone = torch_server.ask({"images": pictures[:1]})
    assert torch_server.ask({"images": pictures}) == alone
    assert torch_server.ask({"images": [*pictures, "!!!!"]}) == Heard(200, {"error": "preprocess failed"})
    if "inputs shape" in torch_server.log:
        # The platform's own says so. It has said it of one picture by now.
        torch_server.wait_log(r"inputs shape torch\.Size\(\[5, 1, 28, 28\]\)")


@pytest.mark.document("tiinfer.19")
def test_pytorch_sample_fetches_pictures(
    trained: dict[str, Path], questions: list[tuple[str, int]], tmp_path: Path
) -> None:
    """From where `--url-allow` lets it: here, a server of this machine."""
    folder = source("verbatim", "tiinfer_torch", {"model_service.py": 1, "net.py": 3}, tmp_path)
    shutil.copytree(trained["torch"], folder / "model")
    picture = tmp_path / "pictures" / "digit.jpg"
    picture.parent.mkdir()
    picture.write_bytes(base64.b64decode(questions[0][0]))
    answer = partial(http.server.SimpleHTTPRequestHandler, directory=str(picture.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer) as pictures:
        threading.Thread(target=pictures.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{pictures.server_address[1]}"
        with ours(folder, "--url-allow", place, env=with_path("torchvision_operators")) as server:
            fetched = server.ask({"images": [f"http://{place}/digit.jpg"]})
            assert fetched == server.ask({"images": [questions[0][0]]})
            assert fetched.body["result"]["type"] == "classification"
        pictures.shutdown()


# TensorFlow


CASES = [(written, kind) for written in SOURCES for kind in ("unzipped", "saved")]


@pytest.mark.document("tiinfer.25", "tiinfer.26", "tiinfer.28", "tiinfer.29", "tiinfer.30")
@pytest.mark.parametrize(("written", "kind"), CASES, ids=map("-".join, CASES))
def test_tensorflow_sample_is_right(
    written: str, kind: str, trained: dict[str, Path], questions: list[tuple[str, int]], tmp_path: Path
) -> None:
    """What a step returns as an error is the answer: an object, with 200, as the document's own sample has it."""
    folder = source(written, "tiinfer_tensorflow", {"model_service.py": 5}, tmp_path)
    shutil.copytree(trained[kind], folder / "model")
    with ours(folder) as server:
        answers = [server.ask({"images": [picture]}) for picture, _ in questions]
        assert all(answer.body["result"]["model_name"] == "sequential" for answer in answers)
        assert right(answers, questions) >= RIGHT
        refused = server.ask({"images": ["!!!!"]})
        assert (refused.status, refused.body["error"]) == (200, "preprocess failed")
        assert "decode" in refused.body["message"].lower(), "the error's own text"
    bars = [line for line in server.log.splitlines() if "/step" in line]
    assert len(bars) == len(questions), "Keras redraws its bar; the log has each once"
    assert all(line.count("1/1") == 1 and not re.search(r"[\r\b\x1b]", line) for line in bars), bars


def test_a_saved_model_without_tf_keras_fails_naming_the_pip_line(trained: dict[str, Path], tmp_path: Path) -> None:
    folder = source("ours", "tiinfer_tensorflow", {}, tmp_path)
    shutil.copytree(trained["saved"], folder / "model")
    with ours(folder, env=with_path("no_tf_keras"), ready=False) as server:
        assert server.ended(60) == 3
        line = last_line(server.log)
        assert "Keras 3 cannot load" in line
        assert "model/saved_model.pb" in line
        assert "-m pip install tf-keras" in line


def right(answers: list[Heard], questions: list[tuple[str, int]]) -> int:
    return sum(
        answer.body["result"]["pred"] == expected for answer, (_, expected) in zip(answers, questions, strict=True)
    )
