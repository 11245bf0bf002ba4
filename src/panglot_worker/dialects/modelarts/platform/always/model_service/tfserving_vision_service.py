"""TensorFlow without a script: pictures in, the model's outputs out."""

from __future__ import annotations

from typing import Any

from model_service.tfserving_model_service import TfServingBaseService


class TfServingVisionService(TfServingBaseService):
    """Every uploaded file becomes an RGB array; a form key becomes the list of its files' arrays."""

    def _preprocess(self, data: Any) -> Any:
        return {key: [pixels(file) for file in files.values()] for key, files in data.items()}


def pixels(file: Any) -> Any:
    """Height x width x 3, as nested lists of floats from 0 to 255."""
    import numpy
    from PIL import Image

    return numpy.asarray(Image.open(file).convert("RGB"), dtype=numpy.float32).tolist()
