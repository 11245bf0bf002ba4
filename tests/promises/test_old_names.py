"""Names of the outside that were changed: both work for one release."""

from __future__ import annotations

import subprocess
import sys

from support.server import serving


def test_a_flag_and_a_series_of_an_old_name_go_on_working() -> None:
    with serving("function", "--max-held", "2MiB") as server:
        warning = "--max-held is now called --request-memory: the old name works in this release, and not in the next"
        assert server.log.count(warning) == 1
        assert server.metric("panglot_held_bytes") == server.metric("panglot_request_memory_bytes") == 0
        text = server.client.get("/metrics").text
        assert "# HELP panglot_held_bytes former name of panglot_request_memory_bytes" in text
        assert text.count("# TYPE panglot_held_bytes gauge") == 1


def test_help_shows_the_new_name_alone() -> None:
    command = [sys.executable, "-m", "panglot", "serve", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "--request-memory" in shown
    assert "--max-held" not in shown
