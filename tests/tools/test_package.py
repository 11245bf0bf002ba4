"""`panglot package`: its files are sound, its image works, and no value can break out of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest
import yaml

from panglot import __version__
from panglot.tools.package import container, wheel
from panglot.tools.scaffold import create
from support import dockerfile
from support.ports import free_port
from support.server import PACKAGES, ROOT, panglot, wait_until

TOKEN = "open-sesame"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "Greeter 2"
    create("plain", folder)
    return folder


def write(folder: Path, *flags: str) -> Path:
    """Run the command; the folder it wrote to."""
    done = panglot("package", str(folder), *flags)
    assert done.returncode == 0, done.stderr
    return folder / "deploy"


def instructions(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, rest in dockerfile.steps(file.read_text()):
        found.setdefault(name, []).append(rest)
    return found


# The image


@pytest.mark.document("evals.42")
@pytest.mark.timeout(600)
def test_the_steps_of_the_dockerfile_make_a_server_that_answers(package: Path, tmp_path: Path) -> None:
    (package / "requirements.txt").write_text("tomli-w==1.2.0\n")
    (package / "panglot.toml").write_text('python = "/only/on/this/machine/python"\n')
    (package / ".env").write_text("SECRET=1")
    text = (package / "model.py").read_text()
    (package / "model.py").write_text(text.replace("import json\n", "import json\nimport tomli_w\n"))
    deploy = write(package)
    image = dockerfile.Image(deploy / "Dockerfile", package, tmp_path / "root")
    assert image.user == "10001:10001"
    assert image.exposed == 8080
    inside = {path.name for path in (tmp_path / "root" / "package").iterdir()}
    assert inside >= {"model.py", "weights.json", "panglot.toml"}
    assert not inside & {".env", "__pycache__"}
    assert {path.name for path in (tmp_path / "root" / "package" / "deploy").iterdir()} == {wheel.NAME}
    assert list((tmp_path / "root" / "tmp").iterdir()) == []
    check_running(image)
    check_origin(image, deploy / wheel.NAME, tmp_path / "again")


def check_origin(image: dockerfile.Image, file: Path, folder: Path) -> None:
    """Panglot came from the wheel and from no index, whole; and what was installed makes the same wheel again."""
    lines = image.run(["pip", "freeze"]).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("panglot")]
    assert line.startswith("panglot @ file://")
    assert image.run(["panglot", "--version"]).stdout.split()[1] == __version__
    assert image.run(["pip", "check"]).returncode == 0
    assert image.run(["panglot", "new", "plain", str(folder)]).returncode == 0, "the templates are in the wheel"
    assert image.run(["panglot", "package", str(folder)]).returncode == 0
    assert (folder / "deploy" / wheel.NAME).read_bytes() == file.read_bytes()


def check_running(image: dockerfile.Image) -> None:
    """Without a token it refuses to start; with one it answers, is healthy, and stops when told."""
    refused = image.run(image.entrypoint)
    assert refused.returncode == 3
    assert "no token is set" in refused.stderr
    port = str(free_port())
    env = {"PANGLOT_TOKEN": TOKEN, "PANGLOT_PORT": port}
    process = image.start(env)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            wait_until(lambda: client.get("/v2/health/ready").status_code == 200, 60)
            assert image.run(image.health, env).returncode == 0
            assert client.post("/predict", json={"text": "thanks"}).status_code == 401
            answer = client.post("/predict", json={"text": "thanks"}, headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.json()["label"] == "friendly"
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=40)
    assert process.returncode == 0, log
    assert image.run(image.health, env).returncode != 0, "nobody listens any more"


def test_the_dockerfile_installs_this_version_and_what_the_package_needs(package: Path) -> None:
    (package / "needs.txt").write_text("")
    deploy = write(
        package, "--requirements", str(package / "needs.txt"), "--base-image", "registry.local:5000/py/x:3.12"
    )
    found = instructions(deploy / "Dockerfile")
    assert found["FROM"] == ["registry.local:5000/py/x:3.12 AS build", "registry.local:5000/py/x:3.12"]
    assert f"PANGLOT=/tmp/{wheel.NAME}" in found["ARG"]
    assert f'["deploy/{wheel.NAME}", "/tmp/"]' in found["COPY"]
    assert '["needs.txt", "/tmp/requirements.txt"]' in found["COPY"]
    assert found["RUN"][-1] == 'pip install --no-cache-dir "$PANGLOT" -r /tmp/requirements.txt'
    assert found["ENTRYPOINT"] == ['["panglot", "serve", "/package"]']
    assert "PANGLOT_HOST=0.0.0.0 PANGLOT_PORT=8080" in found["ENV"]
    (package / "requirements.txt").unlink()
    assert "requirements" not in "".join(instructions(write(package) / "Dockerfile")["RUN"])


def test_what_the_settings_need_is_installed_too(package: Path) -> None:
    (package / "panglot.toml").write_text('otel_endpoint = "http://collector:4318"\n')
    assert f"PANGLOT=/tmp/{wheel.NAME}[otel]" in instructions(write(package) / "Dockerfile")["ARG"]


def test_a_script_of_another_name_and_another_entrypoint(package: Path) -> None:
    (package / "model.py").rename(package / "other name.py")
    done = panglot("package", str(package / "other name.py"), "--port", "9000")
    assert done.returncode == 0
    found = instructions(package / "deploy" / "Dockerfile")
    assert json.loads(found["ENTRYPOINT"][0]) == ["panglot", "serve", "/package/other name.py"]
    assert found["EXPOSE"] == ["9000"]
    write(package, "--entrypoint", """tini -- panglot serve /package --name 'it"s $HOME \\n'""")
    found = instructions(package / "deploy" / "Dockerfile")
    words = ["tini", "--", "panglot", "serve", "/package", "--name", 'it"s $HOME \\n']
    assert json.loads(found["ENTRYPOINT"][0]) == words


# Compose


def test_the_compose_file_is_sound(package: Path) -> None:
    (package / "panglot.toml").write_text('port = 9001\ndrain = "1m"\n')
    compose = yaml.safe_load((write(package) / "compose.yaml").read_text())
    assert compose["name"] == "greeter-2", "the folders of all packages are called deploy"
    service = compose["services"]["greeter-2"]
    assert service["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile"}
    assert service["ports"] == ["9001:9001"]
    assert service["environment"]["PANGLOT_TOKEN"].startswith("${PANGLOT_TOKEN:?")
    assert service["stop_grace_period"] == "75s"
    assert service["read_only"] is True


def test_a_script_in_a_folder_of_versions_takes_its_configuration_along(tmp_path: Path) -> None:
    """Which lies beside the versions, above the script."""
    folder = tmp_path / "digits"
    shutil.copytree(ROOT / "examples" / "triton", folder, ignore=shutil.ignore_patterns("__pycache__"))
    done = panglot("package", str(folder))
    assert f"-t triton {folder}\n" in done.stdout
    lines = instructions(folder / "deploy" / "Dockerfile")
    assert json.loads(lines["ENTRYPOINT"][0])[-1] == "/package"
    assert not (folder / "1" / "deploy").exists()


@pytest.mark.parametrize("name", ["true", "null", "y", "a" * 50])
def test_a_name_stays_a_text(package: Path, name: str) -> None:
    deploy = write(package, "--name", name, "--kubernetes", "--kserve")
    assert list(yaml.safe_load((deploy / "compose.yaml").read_text())["services"]) == [name]
    for file in ("kubernetes.yaml", "keda.yaml", "prometheus-operator.yaml", "kserve.yaml"):
        for part in yaml.safe_load_all((deploy / file).read_text()):
            assert part["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("folder", "name"), [("Größe_Modell", "groe-modell"), ("模型", "model"), ("3d", "model-3d"), ("-x-", "x")]
)
def test_a_name_is_made_of_the_packages(tmp_path: Path, folder: str, name: str) -> None:
    shutil.copytree(PACKAGES / "function", tmp_path / folder)
    done = panglot("package", str(tmp_path / folder))
    assert done.returncode == 0, done.stderr
    assert name in yaml.safe_load((tmp_path / folder / "deploy" / "compose.yaml").read_text())["services"]


# Hostile values: generated files once let peers' users in (CVE-2026-33744, -44345, -44346, -35044)

HOSTILE = [
    ("--base-image", "python:3.11\nRUN curl evil"),
    ("--base-image", "python:3.11 AS build\rRUN x"),
    ("--base-image", "python 3.11"),
    ("--base-image", "$(id)"),
    ("--base-image", "python:3.11\u2028RUN x"),
    ("--base-image", "-rm"),
    ("--entrypoint", "panglot serve\nUSER root"),
    ("--entrypoint", "panglot\u2028serve"),
    ("--entrypoint", "panglot 'serve"),
    ("--entrypoint", " "),
    ("--name", 'x"\nkind: Secret'),
    ("--name", "x: y"),
    ("--name", "X"),
    ("--name", "3"),
    ("--name", "a" * 51),
    ("--name", "${PANGLOT_TOKEN}"),
    ("--name", "x\n"),
    ("--port", "80\nUSER root"),
    ("--port", "0"),
    ("--port", "65536"),
    ("--requirements", "/etc/passwd"),
    ("--requirements", "no such file"),
]


@pytest.mark.parametrize(("option", "value"), HOSTILE, ids=[f"{option} {value!r}"[:40] for option, value in HOSTILE])
def test_a_value_that_could_break_out_is_refused(package: Path, option: str, value: str) -> None:
    done = panglot("package", str(package), option, value)
    assert done.returncode == 3, done.stdout
    assert done.stderr.count("\n") == 1, "one line, whatever the value"
    assert not (package / "deploy").exists()


@pytest.mark.parametrize("name", ["a\nRUN x", 'a"b', "a$b", "a*", "a'b", "a\\b", "a\tb"])
def test_a_path_that_could_break_out_is_refused(package: Path, name: str) -> None:
    done = panglot("package", str(package), "--output", str(package / name))
    assert done.returncode == 3
    assert not (package / name).exists()
    (package / name).write_text("")
    done = panglot("package", str(package), "--requirements", str(package / name))
    assert done.returncode == 3
    assert not (package / "deploy").exists()


def test_a_script_name_cannot_break_out(tmp_path: Path) -> None:
    script = tmp_path / 'a" , "b.py'
    script.write_text("def predict(request):\n    return 1\n")
    assert panglot("package", str(script), "--dialect", "plain").returncode == 0
    found = instructions(tmp_path / "deploy" / "Dockerfile")
    words = ["panglot", "serve", '/package/a" , "b.py', "--dialect", "plain"]
    assert json.loads(found["ENTRYPOINT"][0]) == words
    renamed = script.rename(tmp_path / "a\nRUN b.py")
    assert panglot("package", str(renamed), "--output", str(tmp_path / "new")).returncode == 3
    assert not (tmp_path / "new").exists()


def test_a_requirements_file_is_not_taken_from_outside_by_a_link(package: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("")
    (package / "requirements.txt").unlink()
    (package / "requirements.txt").symlink_to(tmp_path / "outside.txt")
    done = panglot("package", str(package))
    assert done.returncode == 3
    assert "in the package's folder" in done.stderr


def test_a_value_is_never_rendered_twice() -> None:
    assert container.render("@name@ @port@", {"name": "@port@", "port": "1"}) == "@port@ 1"


# Writing


def test_it_replaces_its_own_files_but_none_that_was_changed(package: Path) -> None:
    deploy = write(package)
    assert "USER 10001" in (write(package, "--port", "81") / "Dockerfile").read_text()
    before = {name: (deploy / name).read_text() for name in container.ALWAYS}
    (deploy / "compose.yaml").write_text(before["compose.yaml"] + "# mine\n")
    done = panglot("package", str(package), "--port", "82")
    assert done.returncode == 3
    assert "compose.yaml: panglot package did not write this file, or it was changed since" in done.stderr
    assert (deploy / "Dockerfile").read_text() == before["Dockerfile"]


def test_it_never_writes_through_a_link(package: Path, tmp_path: Path) -> None:
    deploy = write(package)
    shutil.move(deploy / "Dockerfile", tmp_path / "Dockerfile")
    (deploy / "Dockerfile").symlink_to(tmp_path / "Dockerfile")
    assert panglot("package", str(package)).returncode == 3


def test_it_replaces_no_wheel_that_it_did_not_write(package: Path) -> None:
    deploy = write(package)
    write(package)
    for body in (b"", b"no wheel"):
        (deploy / wheel.NAME).write_bytes(body)
        done = panglot("package", str(package))
        assert done.returncode == 3
        assert "panglot package did not write this file" in done.stderr
        assert (deploy / wheel.NAME).read_bytes() == body


def test_the_files_may_lie_elsewhere(package: Path, tmp_path: Path) -> None:
    done = panglot("package", str(package), "--output", str(tmp_path / "out"))
    assert done.returncode == 0
    compose = yaml.safe_load((tmp_path / "out" / "compose.yaml").read_text())
    build = compose["services"]["greeter-2"]["build"]
    assert build == {"context": "../Greeter 2", "dockerfile": "../out/Dockerfile"}
    assert "docker build -f" in done.stdout
    assert os.listdir(package / "deploy") == [wheel.NAME], "a build sees the package's folder alone"
    assert f'["deploy/{wheel.NAME}", "/tmp/"]' in instructions(tmp_path / "out" / "Dockerfile")["COPY"]
    beside = panglot("package", str(package), "--output", str(package))
    assert beside.returncode == 0
    assert set(container.ALWAYS) < set(dockerfile.ignored(package / container.IGNORE))
    assert f'["{wheel.NAME}", "/tmp/"]' in instructions(package / "Dockerfile")["COPY"]


def test_it_says_what_will_be_different_in_the_image(package: Path, tmp_path: Path) -> None:
    (package / "panglot.toml").write_text('python = "/somewhere/python"\n')
    (package / ".dockerignore").write_text("*.log\n")
    (package / "large.bin").symlink_to("/nowhere/large.bin")
    done = panglot("package", str(package))
    assert done.stdout.count("note: ") == 3
    assert "large.bin is a link to outside of the package" in done.stdout


def test_variables_of_this_machine_are_not_those_of_the_container(package: Path) -> None:
    done = panglot("package", str(package), env={"PANGLOT_PORT": "1234", "PANGLOT_TOKEN": TOKEN})
    assert done.returncode == 0
    for name in container.ALWAYS:
        text = (package / "deploy" / name).read_text()
        assert "1234" not in text.partition("\n")[2]
        assert TOKEN not in text


def test_what_is_no_package_is_refused(tmp_path: Path) -> None:
    done = panglot("package", str(tmp_path))
    assert done.returncode == 3
    assert os.listdir(tmp_path) == []
