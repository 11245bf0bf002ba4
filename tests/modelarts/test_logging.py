"""What of a script's own logging is seen: warnings, and INFO where the script asks for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.modelarts import config, package
from support.server import serving

SCRIPT = """
import logging
import threading

from model_service.model_service import SingleNodeService

logger = logging.getLogger(__name__)
quiet = logging.getLogger("quiet")
{setup}


class Service(SingleNodeService):
    def __init__(self, model_name, model_path):
        threading.Thread(target=self.load, name="loader").start()

    def load(self):
        logger.info("own info %s", 1)
        quiet.info("quiet info")
        quiet.warning("quiet warning")
        logging.info("root info")
        logger.debug("own debug")
"""


def log(folder: Path, setup: str) -> str:
    with serving(package(folder, SCRIPT.format(setup=setup), config("MindSpore"))) as server:
        server.wait_log("quiet warning")
    return server.log


@pytest.mark.document("modelarts.25")
def test_without_any_setup_warnings_are_shown(tmp_path: Path) -> None:
    text = log(tmp_path, "")
    assert "info" not in text


@pytest.mark.document("modelarts.26")
def test_a_logger_set_to_info_shows_its_info(tmp_path: Path) -> None:
    text = log(tmp_path, "logger.setLevel(logging.INFO)")
    assert re.search(r"\[loader *\] \[customize_service.py:\d+\] - INFO - own info 1", text)
    assert text.count("own info 1") == 1
    assert "quiet info" not in text
    assert "root info" not in text
    assert "own debug" not in text


@pytest.mark.document("modelarts.26")
def test_the_scripts_own_configuration_is_in_force(tmp_path: Path) -> None:
    text = log(tmp_path, "logging.basicConfig(level=logging.INFO, format='MINE %(levelname)s %(message)s')")
    for line in ("MINE INFO own info 1", "MINE INFO quiet info", "MINE WARNING quiet warning", "MINE INFO root info"):
        assert line in text
    assert text.count("own info 1") == 1
