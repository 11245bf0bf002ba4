"""A model that was loaded before begins asleep, with all that it said of itself; a changed one is loaded anew."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.server import PACKAGES, panglot, serving


def test_a_package_that_was_loaded_before_is_not_loaded_at_the_start(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(PACKAGES / "sleeper", package)
    flags = ("--sleep-after", "60s", "--state-folder", str(tmp_path / "state"))
    with serving(package, *flags) as first:
        document = first.client.get("/openapi.json").json()
    with serving(package, *flags) as second:
        second.wait_log("is asleep until its first request")
        assert not second.workers()
        assert second.client.get("/openapi.json").json()["paths"] == document["paths"]
        assert second.predict({"number": 3}).json()["doubled"] == 6
    with (package / "predict.py").open("a") as script:
        script.write("\nraise SystemError('broken')\n")
    broken = panglot("serve", str(package), "--port", "0", *flags)
    assert broken.returncode == 3
    assert "broken" in broken.stderr


def test_a_stored_description_that_is_damaged_counts_as_none(tmp_path: Path) -> None:
    flags = ("--sleep-after", "60s", "--state-folder", str(tmp_path))
    with serving("sleeper", *flags):
        pass
    (stored,) = (tmp_path / "models").glob("*.json")
    stored.write_text(stored.read_text()[:-20])
    with serving("sleeper", *flags) as server:
        assert len(server.workers()) == 1
        assert server.predict({"number": 3}).json()["doubled"] == 6


def test_a_state_folder_that_cannot_be_used_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving("sleeper", "--sleep-after", "60s", "--state-folder", str(tmp_path / "file")) as server:
        server.wait_log("nothing can be stored in .*--state-folder")
        assert server.predict({"number": 3}).json()["doubled"] == 6
