"""What scripts find: their folders, modules, variables and loggers; and how their lives go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.azureml import write
from support.server import panglot, serving, wait_until

LIVES = """
import json, os, signal, time
azureml = "the word that makes it a package"
started = []

def init():
    started.append(os.getpid())
    print("init in", os.getpid())

def run(raw_data):
    order = json.loads(raw_data)
    if order == "alarm":
        def rang(number, frame):
            raise TimeoutError("rang")
        signal.signal(signal.SIGALRM, rang)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            time.sleep(5)
        except TimeoutError as error:
            return str(error)
    if order == "hang":
        while True:
            time.sleep(0.01)
    return {"started": started, "pid": os.getpid()}
"""


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


@pytest.mark.document("azureml.57")
def test_the_level_of_the_platforms_logger_is_a_variable(tmp_path: Path) -> None:
    script = """
import logging
def init():
    logging.getLogger("azmlinfsrv").info("quiet words")
    logging.getLogger("azmlinfsrv").warning("loud words")
def run(raw_data):
    return 1
"""
    with serving(write(tmp_path, script), env={"AZUREML_LOG_LEVEL": "WARNING"}) as server:
        server.wait_log("W azmlinfsrv - loud words")
        assert "quiet words" not in server.log


@pytest.mark.document("azureml.01")
def test_a_repository_is_served_as_it_lies() -> None:
    with serving("azureml_repository") as server:
        answer = server.client.post("/score", json={"data": [[1, 2, 3], [10, 0, 0]]})
        assert answer.json() == [14.5, 10.5]
        shown = server.client.get("/openapi.json").json()["paths"]["/score"]["post"]["requestBody"]["content"]
        assert shown["application/json"]["example"] == {"data": [[1, 2, 3], [10, 0, 0]]}


@pytest.mark.document("azureml.07", "azureml.48")
def test_a_deployment_with_code_and_variables() -> None:
    """The script reads its model when it is imported, and modules from the folder of the code."""
    with serving("azureml_code") as server:
        answer = server.client.post("/score", content="there", headers={"content-type": "text/plain"})
        assert answer.json() == "HELLO THERE 7 ENTRY_MODULE"
        assert server.client.get("/swagger.json").json()["info"]["title"] == "shouting"
        server.wait_log(r"config.json says what the platform does not know: COLOUR")


@pytest.mark.document("azureml.42")
def test_print_goes_where_logging_json_says() -> None:
    with serving("azureml_code") as server:
        server.wait_log(r"\[azmlinfsrv.print\] loading from .*azureml_code")


def test_print_and_the_platforms_logger_show_without_logging_json(tmp_path: Path) -> None:
    script = """
import logging
def init():
    print("printed words")
    logging.getLogger("azmlinfsrv").info("logged words")
def run(raw_data):
    return 1
"""
    with serving(write(tmp_path, script)) as server:
        server.wait_log("printed words")
        server.wait_log("I azmlinfsrv - logged words")


@pytest.mark.document("azureml.08")
def test_models_of_the_first_sdk() -> None:
    with serving("azureml_sdk1") as server:
        answer = server.client.post("/score", json={"data": [1, 2]}).json()
        assert answer == {"result": [3, 6], "model": "ls/weights/2/weights.json"[-24:]}


@pytest.mark.parametrize(
    ("files", "call", "found"),
    [
        ({"model___a__pkl": "1"}, '"a.pkl"', "model/a.pkl"),
        ({"a__pkl": "1"}, '"a"', "a.pkl"),
        ({"models___a___x__txt": "1"}, '"a"', "models/a"),
        ({"azureml-models___a___1___x__txt": "1", "azureml-models___a___2___y__txt": "1"}, '"a", version=1', "1/x.txt"),
    ],
)
def test_how_get_model_path_finds_a_model(tmp_path: Path, files: dict[str, str], call: str, found: str) -> None:
    script = f"""
from azureml.core.model import Model
def init():
    pass
def run(raw_data):
    return Model.get_model_path({call})
"""
    with serving(write(tmp_path, script, **files)) as server:
        assert server.client.post("/score", content="x").json().endswith(found)


@pytest.mark.document("azureml.11")
def test_a_driver_script() -> None:
    with serving("azureml_driver") as server:
        answer = server.client.post("/score", content="text", headers={"content-type": "text/plain"})
        assert answer.json() == {"called": ["driver", "user"], "text": "text"}


@pytest.mark.document("azureml.06")
def test_a_source_directory_is_imported_from(tmp_path: Path) -> None:
    script = "import words\ndef init():\n    pass\ndef run(raw_data):\n    return words.WORD\n"
    write(tmp_path, script, lib___words__py="WORD = 'found'\n")
    with serving(tmp_path, env={"AZUREML_SOURCE_DIRECTORY": "lib"}) as server:
        assert server.client.post("/score", content="x").json() == "found"


@pytest.mark.document("azureml.51")
def test_fixed_paths_lead_to_the_package(tmp_path: Path) -> None:
    script = """
def init():
    pass
def run(raw_data):
    return [open(f"/var/azureml-app/{name}").read() for name in ("note.txt", "azureml-models/weights.txt")]
FOLDER = "/var/azureml-app/azureml-models"
"""
    package = write(tmp_path / "package", script, note__txt="n", model___weights__txt="w")
    with serving(package, ready=True) as server:
        server.wait_log(r"score.py:6 uses /var/azureml-app/azureml-models, a path of the platform; --link-paths makes")
        assert server.client.post("/score", content="x").status_code == 500
    with serving(package, "--link-paths", "--model-dir", str(package / "model")) as server:
        assert server.client.post("/score", content="x").json() == ["n", "w"]


# Lives


@pytest.mark.document("azureml.10")
def test_init_runs_once_for_each_worker(tmp_path: Path) -> None:
    with serving(write(tmp_path, LIVES), env={"WORKER_COUNT": "2"}) as server:
        wait_until(lambda: len(server.workers()) == 2)
        seen = [server.client.post("/score", json=1).json() for _ in range(20)]
        assert all(answer["started"] == [answer["pid"]] for answer in seen)


@pytest.mark.document("azureml.10")
def test_an_init_that_fails_ends_the_start_with_its_traceback(tmp_path: Path) -> None:
    script = "# azureml\ndef init():\n    open('nowhere.pkl')\ndef run(raw_data):\n    return 1\n"
    done = panglot("serve", str(write(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    assert "FileNotFoundError" in done.stderr
    assert "score.py:3: running init() failed" in done.stderr


@pytest.mark.parametrize(
    ("line", "said", "distribution"),
    [
        ("from azureml.monitoring import Collector", "the module 'azureml.monitoring' is", "azureml-monitoring"),
        ("import azureml.core.conda_dependencies", "the module 'azureml.core.conda_dependencies' is", "azureml-core"),
        (
            "from azureml.core import Workspace",
            "cannot import name 'Workspace' from 'azureml.core', of",
            "azureml-core",
        ),
        ("import azureml.other", "the module 'azureml.other' is", "azureml-sdk"),
    ],
)
def test_what_is_not_here_of_the_sdk_is_named_by_its_distribution(
    tmp_path: Path, line: str, said: str, distribution: str
) -> None:
    script = f"{line}\ndef init():\n    pass\ndef run(raw_data):\n    return 1\n"
    done = panglot("serve", str(write(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    last = last_line(done.stderr)
    assert f"score.py:1: {said}" in last
    assert f"-m pip install {distribution}, or" in last


@pytest.mark.document("azureml.09")
def test_a_script_without_run_is_named_by_the_platforms_sentence(tmp_path: Path) -> None:
    done = panglot("serve", str(write(tmp_path, "# azureml\ndef init():\n    pass\n")), "--port", "0")
    assert done.returncode == 3
    assert "does not have a run() function defined. (fix: def run(raw_data)" in last_line(done.stderr)


def test_a_run_that_a_decorator_hides_is_refused_when_it_is_imported(tmp_path: Path) -> None:
    script = """
def hidden(function):
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner
def init():
    pass
@hidden
def run(raw_data):
    return 1
"""
    done = panglot("serve", str(write(tmp_path, script)), "--port", "0")
    assert done.returncode == 3
    assert "run() cannot accept positional-only arguments, *args, or **kwargs." in done.stderr


@pytest.mark.document("azureml.49")
def test_joblib_of_scikit_learn_has_a_fix(tmp_path: Path) -> None:
    script = "from sklearn.externals import joblib\ndef init():\n    pass\ndef run(raw_data):\n    return 1\n"
    package = write(tmp_path, script)
    shown = json.loads(panglot("inspect", str(package), "--json").stdout)
    assert "scikit-learn 0.23 removed" in json.dumps(shown)
    done = panglot("serve", str(package), "--port", "0")
    assert done.returncode == 3
    assert "fix: write `import joblib`" in done.stderr


@pytest.mark.document("azureml.28", "azureml.39", "azureml.40")
def test_a_call_that_takes_too_long(tmp_path: Path) -> None:
    with serving(write(tmp_path, LIVES), "--kill-grace", "0.1", env={"SCORING_TIMEOUT_MS": "500"}) as server:
        first = server.client.post("/score", json=1).json()["pid"]
        answer = server.client.post("/score", json="hang")
        assert (answer.status_code, answer.json()) == (500, {"message": "Scoring timeout after 500 ms"})
        headers = answer.headers.multi_items()
        assert ("x-ms-run-function-failed", "True") in headers
        assert ("x-ms-server-version", "azmlinfsrv/1.5.1") in headers
        wait_until(lambda: server.client.post("/score", json=1).status_code == 200)
        assert server.client.post("/score", json=1).json()["pid"] != first


@pytest.mark.document("azureml.50")
def test_a_script_may_use_alarms_itself(tmp_path: Path) -> None:
    with serving(write(tmp_path, LIVES)) as server:
        assert server.client.post("/score", json="alarm").json() == "rang"


@pytest.mark.document("azureml.41")
def test_one_request_is_one_call(tmp_path: Path) -> None:
    script = """
import time
azureml, busy = True, []
def init():
    pass
def run(raw_data):
    busy.append(raw_data)
    time.sleep(0.01)
    return [busy.pop(), len(busy)]
"""
    from concurrent.futures import ThreadPoolExecutor

    with serving(write(tmp_path, script)) as server, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: server.client.post("/score", content=str(n)).json(), range(24)))
        assert answers == [[str(n), 0] for n in range(24)]
