"""`panglot tiinfer`: the command lines and variables of both generations, and what is wrong told in one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from panglot.serving.planning import ServingPlan
from support.ports import free_port
from support.server import PACKAGES, ROOT
from support.side_by_side import differs
from support.tiinfer import Heard, Served, command, last_line, ours, run, write

OPS = PACKAGES / "tiinfer_ops"
MODEL = "import tiinfer\nclass Own(tiinfer.Model):\n    def load(self):\n        return True\n"
ABOUT = MODEL + "    def predict(self, request):\n        return [self.model_dir, tiinfer.get_ti_model_dir()]\n"

WRONG = [
    (["--prot", "9000"], {}, "there is no option --prot", "did you mean"),
    (["--port", "x"], {}, "--port 'x': expected a whole number", ""),
    (["--port", "70000"], {}, "--port '70000': must be at most 65535", ""),
    (["--timeout", "30s"], {}, "--timeout '30s': expected milliseconds, such as 30000", ""),
    (["--timeout", "0"], {}, "--timeout '0': expected milliseconds", ""),
    (["--port", "9000", "--http_port", "9001"], {}, "--port 9000 and --http_port 9001 differ", "give one of them"),
    (["--address", "0.0.0.0"], {}, "0.0.0.0 can be reached from other machines, and no token is set", "--no-auth"),
    ([], {"MOSEC_ADDRESS": "0.0.0.0"}, "0.0.0.0 can be reached from other machines", "--no-auth"),
    (["--namespace", "a-b"], {}, "--namespace 'a-b': expected letters, digits and _", ""),
    (["--capacity", "0"], {}, "--capacity '0': must be at least 1", ""),
    (["--wait", "soon"], {}, "--wait 'soon': expected a number", ""),
    (["--max-request-size", "big"], {}, "--max-request-size 'big': expected a size", ""),
    (["--log-level", "loud"], {}, "--log-level 'loud': expected one of debug", ""),
    (["--algorithm_name", "a/b"], {}, "--algorithm_name 'a/b' cannot stand in a path", ""),
    (["--host", "127.0.0.1"], {}, "there is no option --host", ""),
    ([], {"MOSEC_TIMEOUT": "abc"}, "MOSEC_TIMEOUT 'abc': expected milliseconds", ""),
    ([], {"MOSEC_DEBUG": "perhaps"}, "MOSEC_DEBUG 'perhaps': expected true or false", ""),
    ([], {"TI_INFERENCE_NUMS": "0"}, "TI_INFERENCE_NUMS=0: must be at least 1", "unset it"),
    ([], {"TI_POSTPROCESS_NUMS": "-1"}, "TI_POSTPROCESS_NUMS=-1: must be at least 0", "unset it"),
    ([], {"TI_INFERENCE_MAX_BATCH_SIZE": "0"}, "TI_INFERENCE_MAX_BATCH_SIZE=0: must be at least 1", "unset it"),
    (["nowhere"], {}, "nowhere does not exist", ""),
    ([str(PACKAGES / "function")], {}, "this is no tiinfer package", "model_service.py that imports tiinfer"),
]


@pytest.mark.parametrize(("flags", "env", "problem", "fix"), WRONG, ids=[case[2][:50] for case in WRONG])
def test_wrong_uses(flags: list[str], env: dict[str, str], problem: str, fix: str) -> None:
    port = [] if "--port" in flags else ["--port", "0"]
    done = run("tiinfer", *port, *flags, folder=OPS, env=env)
    assert done.returncode == 3, done.stderr
    differs("Unknown options")
    assert problem in last_line(done.stderr)
    assert fix in last_line(done.stderr)


def test_a_folder_without_a_script(tmp_path: Path) -> None:
    done = run("tiinfer", "--model_dir", str(tmp_path / "weights"), folder=tmp_path)
    assert done.returncode == 3
    assert "there is no model_service.py in" in last_line(done.stderr)
    assert ", weights, /data/model" in last_line(done.stderr)


# What is given has its effect

EFFECTS = [
    (["--capacity", "7"], {}, "queue", 7),
    (["--timeout", "1500"], {}, "timeout", 1.5),
    (["--wait", "20"], {}, "max_wait_ms", 20.0),
    (["--max-request-size", "1000"], {}, "max_body", 1000),
    (["--max-request-size", "1000"], {}, "max_json", 1000),
    (["--debug"], {}, "log_level", "debug"),
    (["--log-level", "warning"], {}, "log_level", "warning"),
    (["--http_port", "8600"], {}, "port", 8600),
    ([], {"MOSEC_CAPACITY": "9"}, "queue", 9),
    ([], {"MOSEC_TIMEOUT": "2500"}, "timeout", 2.5),
    ([], {"MOSEC_MAX_REQUEST_SIZE": "2000"}, "max_body", 2000),
    ([], {"MOSEC_DEBUG": "true"}, "log_level", "debug"),
    ([], {"MOSEC_DEBUG": "false"}, "log_level", "info"),
    ([], {"MOSEC_LOG_LEVEL": "error"}, "log_level", "error"),
    ([], {"MOSEC_PORT": "8601"}, "port", 8601),
    (["--port", "8602"], {"MOSEC_PORT": "8601"}, "port", 8602),
    ([], {"PANGLOT_TIMEOUT": "4s", "MOSEC_TIMEOUT": "2500"}, "timeout", 4.0),
    ([], {}, "timeout", 60.0),
    ([], {}, "queue", 1024),
    ([], {}, "max_wait_ms", 0.0),
    ([], {}, "port", 8501),
    ([], {}, "host", "127.0.0.1"),
    ([], {"PANGLOT_TOKEN": "secret"}, "host", "0.0.0.0"),
    ([], {"PANGLOT_NO_AUTH": "1"}, "host", "0.0.0.0"),
    (["--no-auth"], {}, "host", "0.0.0.0"),
    (["--address", "127.0.0.2"], {}, "host", "127.0.0.2"),
    ([], {"PANGLOT_NO_AUTH": "1", "MOSEC_ADDRESS": "127.0.0.3"}, "host", "127.0.0.3"),
    (["--worker-net", "open"], {}, "worker_net", "open"),
    ([], {}, "worker_net", "guard"),
]


@pytest.mark.parametrize(("flags", "env", "name", "value"), EFFECTS, ids=[f"{f} {e} {n}" for f, e, n, _ in EFFECTS])
def test_effects(
    flags: list[str], env: dict[str, str], name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings a command line and variables come to, seen where serving would begin."""
    from panglot.cli.commands import panglot
    from panglot.serving import server as serving

    for key in [key for key in os.environ if key.startswith(("TI_", "MOSEC_", "PANGLOT_"))]:
        monkeypatch.delenv(key)
    for key, text in env.items():
        monkeypatch.setenv(key, text)
    monkeypatch.chdir(OPS)
    seen: list[ServingPlan] = []
    monkeypatch.setattr(serving, "serve", seen.append)
    panglot.main(["tiinfer", *flags], standalone_mode=False)
    (plan,) = seen
    package, settings = plan.models[0].package, plan.settings
    differs("Address")
    differs("Time before a timeout")
    differs("Waiting for a batch")
    assert getattr(settings, name) == value
    told = any("listening on 127.0.0.1 only" in problem for problem in package.problems)
    assert told == (settings.host == "127.0.0.1" and "--address" not in flags)


def test_the_first_generations_command_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", ABOUT)
    port = str(free_port())
    flags = ("--http_port", port, "--algorithm_name", "digits", "--model_dir", "./")
    server = Served(command(*flags), folder, {})
    try:
        server.wait_ready()
        assert server.url().endswith(port)
        assert server.ask(1, "/v1/models/digits:predict") == Heard(200, ["./", "./"])
        assert server.ask(1, "/inference") == Heard(200, ["./", "./"])
        assert server.ask(1, "/v1/models/m:predict").status == 404
        assert server.get("/v1/models") == Heard(200, ["digits"])
        assert server.get("/v1/models/digits") == Heard(200, {"name": "digits", "ready": True})
    finally:
        server.stop()


def test_the_second_generations_variables(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", ABOUT)
    env = {"TI_MODEL_DIR": "/somewhere/", "MOSEC_NAMESPACE": "shop"}
    with ours(folder, env=env) as server:
        assert server.ask(1) == Heard(200, ["/somewhere/", "/somewhere/"])
        assert "shop_throughput_total" in server.client.get("/metrics").text
        assert "mosec_service_" not in server.client.get("/metrics").text


@pytest.mark.document("tiinfer.02")
def test_the_script_may_be_in_the_models_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "data" / "model", ABOUT)
    with ours(tmp_path, "--model_dir", "data/model") as server:
        assert server.ask(1) == Heard(200, [str(folder), str(folder)])


@pytest.mark.document("tiinfer.02")
def test_without_a_models_folder_it_is_the_packages(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", ABOUT)
    if os.path.isdir("/data/model"):
        pytest.skip("this machine has the platform's /data/model")
    with ours(folder) as server:
        assert server.ask(1) == Heard(200, [str(folder), str(folder)])


NOTES = {
    "--path has no effect here": (["--path", "/tmp/x"], {}),
    "--compression has no effect here": (["--compression"], {}),
    "MOSEC_PATH has no effect here": ([], {"MOSEC_PATH": "/tmp/x"}),
    "MOSEC_PROT is not known and has no effect: did you mean MOSEC_PORT?": ([], {"MOSEC_PROT": "1"}),
    "TI_INFERENCE_NUMS=two is no whole number; 1 is used": ([], {"TI_INFERENCE_NUMS": "two"}),
    "postprocess runs beside inference": ([], {"TI_PREPROCESS_NUMS": "1"}),
    "preprocess runs beside inference": ([], {"TI_POSTPROCESS_NUMS": "1"}),
    "listening on 127.0.0.1 only: set PANGLOT_TOKEN, or PANGLOT_NO_AUTH=1": ([], {}),
}  # fmt: skip


def test_what_has_no_effect_says_so() -> None:
    """All notes that can stand together, in two servers."""
    together = {"--path", "--compression", "MOSEC_PATH", "MOSEC_PROT", "TI_INFERENCE_NUMS=two"}
    flags, env = ["--path", "/tmp/x", "--compression"], {
        "MOSEC_PATH": "/tmp/x", "MOSEC_PROT": "1", "TI_INFERENCE_NUMS": "two", "TI_PREPROCESS_NUMS": "1",
    }  # fmt: skip
    with ours(OPS, *flags, env=env) as server:
        assert server.ask({"a": 1}) == Heard(200, {"a": 1})
        for note in NOTES:
            if note.startswith(tuple(together)) or "postprocess" in note or "listening" in note:
                server.wait_log(re.escape(note))
        server.wait_log("asks for pools: preprocess x 1, inference\n")
    differs("One of the two counts")
    with ours(OPS, env={"TI_POSTPROCESS_NUMS": "1"}) as server:
        server.wait_log(": preprocess runs beside inference")
        server.wait_log("asks for pools: inference, postprocess x 1\n")
    assert " x 0" not in server.log


def test_dry_run_loads_sends_the_example_and_ends(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", MODEL, config__json=json.dumps({"apis": [{"request_example": {"a": 1}}]}))
    for flags, env in ((["--dry-run"], {}), ([], {"MOSEC_DRY_RUN": "true"})):
        done = run("tiinfer", *flags, folder=folder, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "POST /inference with the script's example: 200" in done.stdout
    broken = write(tmp_path / "broken", MODEL.replace("True", "False"))
    done = run("tiinfer", "--dry-run", folder=broken)
    assert done.returncode == 3
    assert "load() returned False" in done.stdout


def test_dry_run_looks_at_the_address_it_would_serve_on(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", MODEL)
    port = free_port()
    done = run("tiinfer", "--dry-run", "--port", str(port), folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"127.0.0.1:{port} is free" in done.stdout
    with socket.create_server(("127.0.0.1", port)):
        done = run("tiinfer", "--dry-run", "--http_port", str(port), folder=folder)
    assert done.returncode == 3
    assert f"127.0.0.1:{port}" in done.stdout
    assert "in use" in done.stdout
    default = run("tiinfer", "--dry-run", folder=folder).stdout
    assert "127.0.0.1:8501 is" in default
    assert ":8080" not in default
    assert "0.0.0.0:8501 is" in run("tiinfer", "--dry-run", "--no-auth", folder=folder).stdout


def test_dry_run_loads_from_the_folder_it_is_given(tmp_path: Path) -> None:
    load = "        import os\n        return os.path.isfile(os.path.join(self.model_dir, 'weights'))\n"
    folder = write(tmp_path / "own", MODEL.replace("        return True\n", load))
    assert run("tiinfer", "--dry-run", "--port", "0", folder=folder).returncode == 3
    (tmp_path / "weights").touch()
    done = run("tiinfer", "--dry-run", "--port", "0", "--model_dir", str(tmp_path), folder=folder)
    assert done.returncode == 0, done.stdout


def test_help_names_every_option_of_both_generations() -> None:
    text = run("tiinfer", "--help").stdout
    for option in [
        "--http_port",
        "--algorithm_name",
        "--model_dir",
        "--port",
        "--timeout",
        "--wait",
        "--capacity",
        "--address",
        "--namespace",
        "--max-request-size",
        "--path",
        "--debug",
        "--log-level",
        "--dry-run",
        "--compression",
        "--workers",
        "--python",
        "--worker-net",
    ]:
        assert option in text


def test_another_interpreter(tmp_path: Path) -> None:
    """A script's environment that has the platform's real mosec: that one is used."""
    from support.tiinfer import original

    script = (
        MODEL
        + "    def predict(self, request):\n        import mosec\n        return [tiinfer.__file__, mosec.__file__]\n"
    )
    folder = write(tmp_path / "own", script)
    with ours(folder, "--python", str(original())) as server:
        shim, real = server.ask(1).body
        assert "panglot_worker/dialects/tiinfer/platform/always" in shim
        assert ".cache/tiinfer-original" in real


@pytest.mark.parametrize("package", ["tiinfer_ops", "tiinfer_pipeline", "tiinfer_stream"])
def test_the_packages_run_with_the_real_mosec_too(package: str) -> None:
    from support.tiinfer import original

    asked = {"tiinfer_ops": {"op": "raise", "kind": "ValidationError", "text": "x"}, "tiinfer_pipeline": {"number": 4},
             "tiinfer_stream": {"words": ["a"]}}[package]  # fmt: skip
    answers = []
    for flags in ((), ("--python", str(original()))):
        with ours(package, "--workers", "1", *flags) as server:
            answers.append(server.ask(asked))
    assert answers[0] == answers[1]


def test_examples_and_readme_run() -> None:
    example = ROOT / "examples" / "tiinfer"
    request = json.loads((example / "request.json").read_text())
    with ours(example) as server:
        assert server.ask(request).body["result"]["digit"] == 7
        assert server.ask(request, "/v1/models/m:predict").status == 200


def test_new(tmp_path: Path) -> None:
    done = run("new", "tiinfer", str(tmp_path / "own"))
    assert done.returncode == 0, done.stderr
    request = json.loads((tmp_path / "own" / "request.json").read_text())
    with ours(tmp_path / "own") as server:
        answer = server.ask(request)
        assert answer.status == 200
        assert json.dumps(answer.body, separators=(",", ":")) in (tmp_path / "own" / "README.md").read_text()
        assert server.ask({"nothing": 1}) == Heard(422, "request validation error: send a text")
    shutil.rmtree(tmp_path / "own")
