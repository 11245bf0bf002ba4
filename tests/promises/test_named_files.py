"""The promise: a request names files of the server below `--uri-root` alone, and learns nothing of any other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from panglot.tools.scaffold import create
from support.server import Server, panglot, serving
from support.streams import begin, ended, start
from support.videos import make

TOKEN = "s3cret"
PATHS = ("clip.mp4", "/etc/passwd", "/etc/shadow", "/nowhere/at/all", "/proc/self/environ", "/", "megflow_video.toml")


def refusals(server: Server, paths: list[str]) -> set[tuple[int, str]]:
    answers = [begin(server, path) for path in paths]
    return {(answer.status_code, answer.text) for answer in answers}


@pytest.mark.parametrize("token", ["", TOKEN])
def test_without_a_root_nothing_is_opened_on_loopback(tmp_path: Path, token: str) -> None:
    """Neither on loopback nor with the token; a file that is there sounds like one that is not."""
    there = str(make(tmp_path / "there.mp4", 3))
    with serving("megflow_video", env={"PANGLOT_TOKEN": token} if token else None) as server:
        if token:
            server.client.headers["authorization"] = f"Bearer {token}"
        heard = refusals(server, [there, f"file://{there}", str(tmp_path / "missing.mp4"), *PATHS])
        statuses, words = {status for status, _ in heard}, {text for _, text in heard if "--uri-root" in text}
        assert statuses == {400}
        assert len(words) == 1
        assert refusals(server, [there, str(tmp_path / "missing.mp4")]) == {(400, words.pop())}
        server.wait_log("for a command to try here:")  # no line that would be refused
    assert "/start/" not in server.log


def test_with_a_root_what_lies_outside_sounds_as_if_it_were_not_there(tmp_path: Path) -> None:
    root = tmp_path / "videos"
    root.mkdir()
    make(root / "inside.mp4", 3)
    outside = make(tmp_path / "outside.mp4", 3)
    with serving("megflow_video", "--uri-root", str(root)) as server:
        assert ended(server, start(server, "inside.mp4"))["state"] == "finished"
        assert (
            len(refusals(server, [str(outside), "../outside.mp4", "missing.mp4", str(tmp_path / "missing.mp4")])) == 1
        )


ODD = (
    "50%.mp4",
    "50%41.mp4",
    "~clip.mp4",
    "back\\slash.mp4",
    "a b+c&d=e?f#g.mp4",
    "ends.",
    "..mp4",
    "-.mp4",
    "ümlaut.mp4",
)


def test_a_name_below_the_root_may_be_what_the_file_system_allows(tmp_path: Path) -> None:
    """Sent once percent-encoded, and decoded once: `50%2541.mp4` is the file `50%41.mp4`."""
    (tmp_path / "~in %").mkdir()
    for name in ODD:
        make(tmp_path / "~in %" / name, 3)
    with serving("megflow_video", "--uri-root", str(tmp_path)) as server:
        for name in ODD:
            for spelling in (f"~in %/{name}", f"{tmp_path}/~in %/{name}"):
                assert ended(server, start(server, spelling))["state"] == "finished", name
        others = ["~in %/50A.mp4", "~in %25/50%.mp4", "~in %/../x.mp4", "~/x.mp4", "~in %\\50%.mp4", "~in %/50%00.mp4"]
        assert len(refusals(server, others)) == 1


def test_a_root_in_the_file_of_settings_begins_at_that_file(tmp_path: Path) -> None:
    folder = tmp_path / "balls"
    create("megflow", folder, kind="video")
    assert 'uri_root = "."' in (folder / "panglot.toml").read_text()
    with serving(folder) as server:
        server.wait_log("/start/clip.mp4")
        assert ended(server, start(server, "clip.mp4"))["state"] == "finished"
        assert begin(server, "/etc/passwd").status_code == 400


def test_a_root_that_is_not_there_is_a_start_error(tmp_path: Path) -> None:
    done = panglot("serve", "tests/packages/megflow_video", "--port", "0", "--uri-root", str(tmp_path / "none"))
    assert done.returncode == 3
    assert "--uri-root" in done.stderr
    assert "no such folder" in done.stderr
