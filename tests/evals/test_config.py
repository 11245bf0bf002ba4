"""Where a script's configuration comes from, and what reaches `create_net`."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from panglot.dialects import discover
from panglot.errors import StartError
from support.evals import GOOD, package, result, returning, single
from support.server import panglot, serving

CONFIGS = returning(GOOD % "model", create="configs, 0, ''")
READ = "dict(configs, texts={name: open(path).read() for name, path in configs['model_files'].items()}), 0, ''"
READING = returning(GOOD % "model", create=READ)


def tar(path: Path, members: dict[str, str | None], mode: str = "w") -> Path:
    """An archive; a member without text is a link to /etc/passwd."""
    with tarfile.open(path, mode) as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            if text is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(info)
            elif name.endswith("/"):
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
    return path


def configs(folder: Path, *flags: str, env: dict[str, str] | None = None) -> Any:
    with serving(folder, *flags, env=env) as server:
        return result(server, single())


@pytest.mark.document("evals.04")
def test_without_any_configuration(tmp_path: Path) -> None:
    seen = configs(package(tmp_path, CONFIGS))
    assert sorted(seen) == [
        "app", "batch_size", "custom_files", "custom_params", "model_files", "model_params", "use_device", "workspace",
    ]  # fmt: skip
    assert (seen["app"], seen["batch_size"], seen["use_device"]) == ("", 1, "CPU")
    assert seen["custom_params"] == seen["model_params"] == seen["model_files"] == seen["custom_files"] == {}


@pytest.mark.document("evals.07", "evals.08", "evals.09", "evals.10")
def test_every_entry_from_panglot_toml(tmp_path: Path) -> None:
    toml = """
    timeout = 30
    [evals]
    app = "mine"
    batch_size = 7
    use_device = "GPU"
    custom_params = { threshold = 0.5, names = ["a"] }
    model_params = { cropSize = "224x300" }
    model_files = { "sub/net.txt" = "stored/net.txt" }
    custom_files = "extra"
    """
    files = {"stored___net__txt": "weights", "extra___labels__csv": "a,b", "extra___deep___x__txt": "x"}
    seen = configs(package(tmp_path, READING, panglot__toml=toml, **files))
    assert (seen["app"], seen["batch_size"], seen["use_device"]) == ("mine", 7, "GPU")
    assert seen["custom_params"] == {"threshold": 0.5, "names": ["a"]}
    assert seen["model_params"] == {"cropSize": "224x300"}
    assert seen["texts"] == {"sub/net.txt": "weights"}
    assert sorted(seen["custom_files"]) == ["deep/x.txt", "labels.csv"]
    assert all(os.path.isabs(path) for path in seen["custom_files"].values())


@pytest.mark.document("evals.09")
def test_a_folder_of_model_files_beside_the_script(tmp_path: Path) -> None:
    files = {"models___net__txt": "weights", "models___sub___deep__txt": "deeper", "models___.hidden": "no"}
    seen = configs(package(tmp_path, READING, **files))
    assert seen["texts"] == {"net.txt": "weights", "sub/deep.txt": "deeper"}


CONF = {
    "run_mode": "standalone",
    "http_port": "43999",
    "use_device": "GPU",
    "workspace": "",
    "owner": {"uid": 1, "ak": "secret-ak", "sk": "secret-sk"},
    "release": {
        "tar_file": "file://model.tar",
        "batch_size": 5,
        "image_width": 224,
        "custom_files": {"labels": "file://labels.csv"},
        "custom_values": {"threshold": 0.25},
        "model_params": {"cropSize": 300},
    },
    "worker": {"timeout": 1, "max_concurrent": 3},
}


@pytest.mark.document("evals.10")
def test_the_platform_s_file(tmp_path: Path) -> None:
    """Relative names are seen from the file; `model_params` reach the script, which the original forgot."""
    package(tmp_path, READING, labels__csv="a")
    tar(tmp_path / "model.tar", {"./net.txt": "weights", "sub/": "", "sub/dir/a.txt": "deep", "./.hidden": "no"})
    (tmp_path / "serving-eval.conf").write_text(json.dumps(CONF))
    with serving(tmp_path) as server:
        seen = result(server, single())
        shown = server.client.get("/configs").text
    assert discover(tmp_path).defaults["port"] == 43999
    assert (seen["batch_size"], seen["use_device"]) == (5, "GPU")
    assert seen["texts"] == {"./net.txt": "weights", "sub/dir/a.txt": "deep"}
    assert list(seen["custom_files"]) == ["labels"]
    assert seen["custom_params"] == {"threshold": 0.25}
    assert seen["model_params"] == {"cropSize": 300}
    assert "image_width" not in seen
    assert "secret" not in shown


def test_the_file_may_be_named(tmp_path: Path) -> None:
    package(tmp_path / "package", CONFIGS, **{"serving-eval__conf": '{"release": {"batch_size": 2}}'})
    other = tmp_path / "other.json"
    other.write_text('{"release": {"batch_size": 6, "custom_params": {"documented": true}}}')
    assert configs(tmp_path / "package")["batch_size"] == 2
    assert configs(tmp_path / "package", "--config", str(other))["custom_params"] == {"documented": True}
    assert discover(tmp_path / "package" / "serving-eval.conf").options["batch_size"] == 2
    done = panglot("inspect", str(tmp_path / "package"), "--json", env={"PANGLOT_CONFIG": str(other)})
    assert json.loads(done.stdout)["facts"]["batch_size"] == ["6"]


def test_the_platform_s_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, CONFIGS)
    seen = configs(tmp_path, env={"USE_DEVICE": "GPU", "PORT_HTTP": "43661", "RUN_MODE": "production"})
    assert seen["use_device"] == "GPU"
    monkeypatch.setenv("PORT_HTTP", "43661")
    monkeypatch.setenv("RUN_MODE", "production")
    found = discover(tmp_path)
    assert found.defaults["port"] == 43661
    assert "no queue and no etcd" in found.problems[0]
    (tmp_path / "serving-eval.conf").write_text('{"http_port": 43662}')
    assert discover(tmp_path).defaults["port"] == 43662


REFUSED = {
    "an unknown key": (
        {"panglot__toml": "[evals]\nbatch_sise = 1\n"},
        r"panglot.toml:2: unknown key.*did you mean batch_size",
    ),
    "a wrong kind": ({"panglot__toml": "[evals]\n\nbatch_size = 'x'\n"}, r"panglot.toml:3: batch_size.*whole number"),
    "a negative": ({"panglot__toml": "[evals]\nbatch_size = -1\n"}, "batch_size = -1"),
    "no table": ({"panglot__toml": "evals = 1\n"}, "expected a table"),
    "a missing file": ({"panglot__toml": "[evals.model_files]\na = 'nope'\n"}, "there is no file .*nope"),
    "a missing folder": ({"panglot__toml": "[evals]\nmodel_files = 'nope'\n"}, "there is no folder .*nope"),
    "no JSON": ({"serving-eval__conf": "{\n  oops"}, r"serving-eval.conf:2: not valid JSON"),
    "a list": ({"serving-eval__conf": "[]"}, "expected a JSON object"),
    "a port": ({"serving-eval__conf": '{"http_port": "x"}'}, "http_port = 'x': expected a port"),
    "a release": ({"serving-eval__conf": '{"release": 7}'}, "release: expected an object"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_configuration(tmp_path: Path, name: str) -> None:
    files, words = REFUSED[name]
    with pytest.raises(StartError, match=words):
        discover(package(tmp_path, CONFIGS, **files))


ARCHIVES = {
    "upwards": {"../evil.txt": "x"},
    "inside": {"a/../../evil.txt": "x"},
    "absolute": {"/tmp/evil.txt": "x"},
    "a link": {"link": None},
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_would_leave_its_folder(tmp_path: Path, name: str) -> None:
    package(tmp_path, CONFIGS, panglot__toml="[evals]\ntar_file = 'model.tar'\n")
    tar(tmp_path / "model.tar", ARCHIVES[name])
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "model.tar: " in done.stderr
    assert not Path("/tmp/evil.txt").exists()


def test_a_compressed_archive(tmp_path: Path) -> None:
    package(tmp_path, CONFIGS, panglot__toml="[evals]\ntar_file = 'model.tar'\n")
    tar(tmp_path / "model.tar", {"a.txt": "x"}, "w:gz")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "gunzip it" in done.stderr


LINKED = "{n: os.path.islink(p) for n, p in configs['model_files'].items()}, 0, ''"


@pytest.mark.parametrize("flag", ["true", "false"])
def test_large_files_may_be_linked(tmp_path: Path, flag: str) -> None:
    """A sparse file of more than 256 MiB is a link by choice, and else a copy; never a second name of the original."""
    if flag == "false" and os.statvfs("/tmp").f_bavail * os.statvfs("/tmp").f_frsize < 1 << 30:
        pytest.skip("no room for a copy")
    package(tmp_path, returning(GOOD % "model", create=LINKED), panglot__toml=f"[evals]\nlink_large = {flag}\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.bin").write_bytes(b"small")
    with open(tmp_path / "models" / "large.bin", "wb") as file:
        file.truncate((256 << 20) + 1)
    with serving(tmp_path) as server:
        assert result(server, single()) == {"large.bin": flag == "true", "small.bin": False}
        assert all(path.stat().st_nlink == 1 for path in (tmp_path / "models").iterdir())
