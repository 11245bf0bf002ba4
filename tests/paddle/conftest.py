"""Models are exported once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import paddle


@pytest.fixture(scope="session")
def alexnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the exported net, as this Paddle writes it."""
    return paddle.export_alexnet(tmp_path_factory.mktemp("alexnet"))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pictures")
    return [paddle.picture(folder / f"{seed}.{'png' if seed % 2 else 'jpg'}", seed) for seed in range(12)]
