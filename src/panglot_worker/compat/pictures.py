"""Pillow's limit on picture size, set the moment a script imports Pillow and not before."""

from __future__ import annotations

import warnings
from typing import Any

from panglot_worker.compat.importing import after_import


def limit(pixels: int) -> None:
    """Let Pillow refuse pictures of more pixels."""

    def set_limit(module: Any) -> None:
        module.MAX_IMAGE_PIXELS = pixels
        # Between one and two times the limit Pillow only warns.
        warnings.simplefilter("error", module.DecompressionBombWarning)

    after_import("PIL.Image", set_limit)
