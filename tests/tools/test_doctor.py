"""`panglot doctor`: it finds what keeps a package from being served, and says how to mend it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from panglot.inputs.documented import example_of
from panglot.machine import cgroups
from panglot.tools.doctor.finding import Finding
from panglot.tools.doctor.selftest import flags_of
from support import interpreters
from support.server import PACKAGES, ROOT, panglot

BROKEN = PACKAGES / "broken"
Findings = dict[tuple[str, str], Finding]


class Examined:
    """What `panglot doctor --json` says, by section and name."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        port = [] if "--port" in arguments else ["--port", "0"]
        done = panglot("doctor", "--json", *arguments, *port, env=env)
        assert done.returncode in (0, 3), done.stderr
        self.code = done.returncode
        self.text = done.stdout + done.stderr
        self.report: dict[str, Any] = json.loads(done.stdout)
        assert self.report["ok"] is (self.code == 0)

    def __getitem__(self, name: str) -> Finding:
        """The only finding of this name, such as "worker numpy"."""
        found = self.all(name)
        assert len(found) == 1, found
        return found[0]

    def all(self, name: str) -> list[Finding]:
        findings = [Finding(**finding) for finding in self.report["findings"]]
        return [finding for finding in findings if f"{finding.section} {finding.name}" == name]

    @property
    def log(self) -> str:
        return "\n".join(self.report["log"])


def script(folder: Path, text: str) -> str:
    (folder / "model.py").write_text(text)
    return str(folder)


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment in which this program is found first."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_without_a_path_it_looks_at_panglot_the_machine_and_the_interpreter() -> None:
    seen = Examined()
    assert seen.code == 0
    assert seen["panglot version"].value == "0.2.0"
    assert sys.executable in seen["panglot interpreter"].value
    assert re.search(r"uvloop \d.*httptools \d.*orjson \d", seen["panglot libraries"].value)
    assert "connections" in seen["machine open files"].value
    assert seen["machine memory files"].value == "memfd works"
    assert seen["machine temporary folder"].state == "ok"
    assert re.search(r"starts, and ends \d+ ms after its front", seen["worker process"].value)
    assert not seen.all("self-test ready")


def test_it_prints_a_table_for_people(tmp_path: Path) -> None:
    done = panglot("doctor", str(BROKEN / "load_fails"), "--port", "0")
    assert done.returncode == 3
    assert re.search(r"^ok +version +0\.2\.0", done.stdout, re.MULTILINE)
    assert re.search(r"^problem +ready +.*model.py:6: running load\(\) failed", done.stdout, re.MULTILINE)
    assert "line 6, in open" in done.stdout, "the script's traceback"
    assert done.stdout.strip().splitlines()[-1].startswith("1 problem, ")


@pytest.mark.parametrize("python", ["", next(iter(interpreters.found().values()), "")], ids=["default", "oldest"])
def test_a_healthy_package_is_served_and_asked(tmp_path: Path, python: str) -> None:
    panglot("new", "plain", str(tmp_path / "own"))
    seen = Examined(str(tmp_path / "own"), *(["--python", python] if python else []))
    assert seen.code == 0
    assert seen["package package"].value.startswith("own: plain, Model.predict in ")
    assert re.fullmatch(r"POST /predict with the script's example: 200 in [\d.]+ ms", seen["self-test example"].value)
    assert re.fullmatch(r"queue [\d.]+, decode .*total [\d.]+ ms", seen["self-test stages"].value)
    assert seen["self-test stop"].state == "ok"
    assert seen.log == ""
    if python:
        assert python in seen["worker interpreter"].value


def test_a_picture_of_the_package_is_sent_where_the_example_is_one() -> None:
    seen = Examined(str(ROOT / "examples" / "digits"))
    assert seen.code == 0
    assert re.fullmatch(r"POST /predict with \w+\.png: 200 in [\d.]+ ms", seen["self-test example"].value)


def test_nothing_is_left_running(tmp_path: Path) -> None:
    text = "import os\nprint('worker is', os.getpid())\ndef predict(r):\n    os._exit(3)\ndef example():\n    return 1"
    seen = Examined(script(tmp_path, text))
    pids = [int(pid) for pid in re.findall(r"worker is (\d+)", seen.log)]
    assert pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


# What a package lacks


def test_missing_imports_are_told_with_file_line_and_pip_line(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import json\nfrom no_such_package.deep import thing\n")
    folder = script(tmp_path, "import helper\nimport os, cv2_no_such\n\ndef predict(request):\n    return 1\n")
    seen = Examined(folder)
    assert seen.code == 3
    first, second = sorted(seen.all("package import"), key=lambda finding: finding.value)
    assert first.value == f"{tmp_path}/helper.py:2 imports no_such_package, which is not installed"
    assert second.value == f"{tmp_path}/model.py:2 imports cv2_no_such, which is not installed"
    assert second.fix == f"{sys.executable} -m pip install cv2_no_such"
    # Once, and not again for the self-test, which fails for the same reason.
    assert seen["self-test ready"].value == "not ready: see the import above"
    assert not seen.log


def test_the_pip_line_knows_distributions_of_another_name(tmp_path: Path) -> None:
    oldest = next(iter(interpreters.found().values()))
    seen = Examined(script(tmp_path, "import sklearn\ndef predict(r): return 1"), "--python", oldest)
    if seen.all("package import"):
        assert seen["package import"].fix == f"{oldest} -m pip install scikit-learn"


def test_a_standard_module_of_another_version_is_no_matter_of_pip(tmp_path: Path) -> None:
    version, oldest = next(iter(interpreters.found().items()))
    if version in ("3.11", "3.12", "3.13", "3.14"):
        pytest.skip("no older interpreter here")
    seen = Examined(script(tmp_path, "import tomllib\ndef predict(r): return 1"), "--python", oldest)
    assert "--python of another version" in seen["package import"].fix


def test_imports_the_script_finds_by_its_own_means_are_no_problem(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "hidden_module.py").write_text("")
    package = tmp_path / "package"
    package.mkdir()
    text = f"import sys\nsys.path.append({str(elsewhere)!r})\nimport hidden_module\ndef predict(r):\n    return r\n"
    seen = Examined(script(package, text + "def example():\n    return 1\n"))
    assert seen.code == 0
    assert seen["package import"].state == "warning"


def test_modules_of_the_package_are_never_called_not_installed(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "hidden_module.py").write_text("")
    found = "import sys\nsys.path.append('lib')\nimport hidden_module\ndef predict(r):\n    return r\n"
    seen = Examined(script(tmp_path, found + "def example():\n    return 1\n"))
    assert seen.code == 0
    assert not seen.all("package import")
    lost = Examined(script(tmp_path, "import hidden_module\ndef predict(r):\n    return r\n"))
    finding = lost["package import"]
    assert "pip" not in finding.fix
    assert f"PYTHONPATH={tmp_path / 'lib'}" in finding.fix


def test_what_lies_in_the_folder_is_sent_and_advice_fits_the_dialect(tmp_path: Path) -> None:
    package = script(tmp_path, "def predict(r):\n    return r['x']\n")
    (tmp_path / "request.json").write_text('{"x": 1}')
    assert ": 200 in " in Examined(package)["self-test example"].value
    graph = tmp_path / "graph"
    shutil.copytree(ROOT / "examples" / "megflow" / "digits", graph)
    for picture in graph.glob("*.png"):
        picture.unlink()
    assert Examined(str(graph))["self-test example"].fix == "put an image into the folder of the graph"


def test_the_file_that_config_names_is_read(tmp_path: Path) -> None:
    package = str(ROOT / "examples" / "evals")
    seen = Examined(package, "--config", str(tmp_path / "nowhere.conf"))
    assert seen.code == 3
    assert "nowhere.conf" in seen["package package"].value
    (tmp_path / "good.conf").write_text('{"release": {"batch_size": 3}}')
    assert Examined(package, "--config", str(tmp_path / "good.conf")).code == 0


def test_guarded_and_own_imports_are_not_asked_for(tmp_path: Path) -> None:
    text = "try:\n    import no_such_thing\nexcept ImportError:\n    pass\nfrom panglot import File\n"
    seen = Examined(script(tmp_path, text + "def predict(r):\n    import nor_this\n"))
    assert not seen.all("package import")


@pytest.mark.parametrize(
    ("package", "name", "words"),
    [
        ("nowhere", "package package", "does not exist"),
        ("syntax", "package package", "model.py:4: syntax error"),
        ("no_predict", "package package", "there is no predict"),
        ("toml_typo", "panglot settings", "panglot.toml:2: unknown key 'max_bach'"),
        ("exits_at_import", "self-test ready", "model.py:3: the script ended the process with exit code 4"),
        ("load_fails", "self-test ready", "model.py:6: running load() failed: FileNotFoundError"),
    ],
)
def test_what_is_wrong_with_a_package_is_a_problem(package: str, name: str, words: str) -> None:
    seen = Examined(str(BROKEN / package))
    assert seen.code == 3
    assert seen[name].state == "problem"
    assert words in seen[name].value


def test_an_example_that_fails_is_a_problem_and_one_that_lacks_a_warning(tmp_path: Path) -> None:
    failing = Examined(script(tmp_path, "def predict(r):\n    return 1 / 0\ndef example():\n    return {}\n"))
    assert failing.code == 3
    assert ": 500 in " in failing["self-test example"].value
    assert "ZeroDivisionError" in failing.log
    lacking = Examined(script(tmp_path, "def predict(r):\n    return 1\n"))
    assert lacking.code == 0
    assert lacking["self-test example"].state == "warning"
    assert "example()" in lacking["self-test example"].fix


# What a machine lacks


def test_frameworks_are_found_without_importing_them(tmp_path: Path) -> None:
    for module, distribution in (("torch", "torch"), ("paddle", "paddlepaddle"), ("cv2", "opencv_python")):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text("raise SystemExit('it was imported')")
        about = tmp_path / f"{distribution}-9.9.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 9.9\n")
    seen = Examined("--python", sys.executable, env={"PYTHONPATH": str(tmp_path)})
    assert seen.code == 0
    assert {"torch 9.9", "paddle 9.9"} <= set(seen["worker frameworks"].value.split(", "))
    assert seen["worker cv2"].value == "9.9"


@pytest.mark.parametrize("python", ["/bin/true", "/nowhere/python"])
def test_what_is_no_interpreter_is_a_problem(python: str) -> None:
    seen = Examined(str(PACKAGES / "function"), "--python", python)
    assert seen.code == 3
    assert "is no Python interpreter" in seen["worker interpreter"].value
    assert "not tried" in seen["self-test ready"].value


def test_a_port_in_use_is_told_with_who_has_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        seen = Examined("--port", port)
    assert seen.code == 3
    assert f"127.0.0.1:{port}: address already in use" in seen["address port"].value
    assert f"process {os.getpid()} (" in seen["address port"].value


def test_an_open_address_without_a_token_is_a_problem_and_a_token_is_never_shown() -> None:
    seen = Examined("--host", "0.0.0.0")
    assert seen["address access"].state == "problem"
    secret = Examined(str(PACKAGES / "stages"), "--host", "0.0.0.0", env={"PANGLOT_TOKEN": "open-sesame"})
    assert secret.code == 0
    assert secret["address access"].value == "a token is needed"
    assert ": 200 in " in secret["self-test example"].value
    assert "open-sesame" not in secret.text


def test_gpus_are_those_nvidia_smi_lists(tmp_path: Path) -> None:
    listing = "echo 'NVIDIA L4, 23034 MiB, 550.54.15'"
    seen = Examined("--device", "cuda:0", env=program(tmp_path, "nvidia-smi", listing))
    assert seen["machine GPUs"].value == "NVIDIA L4 (23034 MiB, driver 550.54.15)"
    broken = program(tmp_path, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    assert Examined(env=broken)["machine GPUs"].state == "warning"
    asked = Examined("--device", "cuda:0", env=broken)
    assert asked["machine GPUs"].state == "problem"
    assert asked["machine GPUs"].value == "nvidia-smi: NVIDIA-SMI has failed"


def test_too_few_open_files_are_a_warning() -> None:
    seen = Examined("--max-connections", "100000000")
    assert seen["machine open files"].state == "warning"
    assert "max-connections" in seen["machine open files"].fix


def test_the_limits_of_a_container_count(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/outer/inner\n")
    (cgroup / "outer" / "inner").mkdir(parents=True)
    (cgroup / "outer" / "cpu.max").write_text("50000 100000\n")
    (cgroup / "outer" / "inner" / "cpu.max").write_text("max 100000\n")
    (cgroup / "outer" / "inner" / "memory.max").write_text("1073741824\n")
    (cgroup / "outer" / "memory.max").write_text("max\n")
    assert cgroups.cpu_quotas(cgroup, proc) == [0.5]
    assert cgroups.memory_limits(cgroup, proc) == [1073741824]


def test_the_limits_of_an_old_container_count(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/\n")
    for folder, file, text in (
        ("cpu,cpuacct/box", "cpu.cfs_quota_us", "150000"),
        ("cpu,cpuacct/box", "cpu.cfs_period_us", "100000"),
        ("memory/box", "memory.limit_in_bytes", "2147483648"),
    ):
        (cgroup / folder).mkdir(parents=True, exist_ok=True)
        (cgroup / folder / file).write_text(text + "\n")
    assert cgroups.cpu_quotas(cgroup, proc) == [1.5]
    assert cgroups.memory_limits(cgroup, proc) == [2147483648]


# The request it sends


def document(content: dict[str, Any]) -> dict[str, Any]:
    return {"paths": {"/x": {"post": {"tags": ["inference"], "requestBody": {"content": content}}}}}


def test_a_form_is_filled_with_files_of_the_wanted_types(tmp_path: Path) -> None:
    (tmp_path / 'a"b.png').write_bytes(b"pixels")
    (tmp_path / "note.txt").write_text("text")
    binary = {"type": "string", "format": "binary"}
    media: dict[str, Any] = {
        "schema": {"properties": {"image": binary, "why": {"type": "string"}}, "required": ["image"]},
        "encoding": {"image": {"contentType": "image/*"}},
    }
    example = example_of(document({"multipart/form-data": media}), tmp_path)
    assert example is not None
    body = example.request.encoded()[1]
    assert body.count(b"Content-Disposition") == 1
    assert (
        b'name="image"; filename="a%22b.png"\r\nContent-Type: image/png\r\n\r\npixels\r\n'
        in example.request.encoded()[1]
    )
    media["schema"]["required"] = ["image", "why"]
    assert example_of(document({"multipart/form-data": media}), tmp_path) is None, "a text cannot be made up"


def test_a_body_is_a_file_of_the_wanted_type(tmp_path: Path) -> None:
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = {"image/png": binary, "image/*": binary, "application/octet-stream": binary}
    assert example_of(document(content), tmp_path) is None
    (tmp_path / "a.jpg").write_bytes(b"pixels")
    example = example_of(document(content), tmp_path)
    assert example is not None
    assert (*example.request.encoded(), example.guessed) == ("image/jpeg", b"pixels", True)


def test_options_are_given_on_as_they_were_given() -> None:
    given = {"max_batch": "4", "rerun": False, "dev": True, "python": None}
    assert flags_of(given) == ["--max-batch=4", "--no-rerun", "--dev"]


def test_files_that_git_lfs_has_not_fetched_are_named(tmp_path: Path) -> None:
    """A repository of a hub that was cloned without Git LFS has pointers in place of its weights."""
    path = script(tmp_path, "def predict(request):\n    return request\n")
    assert not Examined(path).all("package files")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12345\n"
    (tmp_path / "weights").mkdir()
    for name in ("model.bin", "weights/1.bin", "weights/2.bin", "weights/3.bin", "weights/4.bin", "weights/5.bin"):
        (tmp_path / name).write_text(pointer)
    (tmp_path / "notes.txt").write_text("see " + pointer)
    found = Examined(path)["package files"]
    assert found.value.endswith("model.bin, weights/1.bin, weights/2.bin, weights/3.bin, weights/4.bin and 1 more")
    assert (found.state, found.fix) == ("warning", f"git -C {path} lfs pull")


def test_unsigned_webhooks_are_told_with_the_way_to_a_secret() -> None:
    found = Examined("--webhook-allow", "example.com")["panglot webhooks"]
    assert (found.state, "without a signature" in found.value) == ("warning", True)
    command = re.search(r"python3 -c \"(.+)\"", found.fix)
    assert command is not None
    made = subprocess.run([sys.executable, "-c", command[1]], capture_output=True, text=True, check=True).stdout
    secret = {"PANGLOT_WEBHOOK_SECRET": made.strip()}
    assert Examined("--webhook-allow", "example.com", env=secret).all("panglot webhooks") == []
    assert Examined().all("panglot webhooks") == []
