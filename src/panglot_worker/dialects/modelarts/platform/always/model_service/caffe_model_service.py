"""Caffe: `self.net` from the prototxt and the caffemodel of the folder."""

from __future__ import annotations

import glob
import os
from typing import Any

from model_service.model_service import SingleNodeService


class CaffeBaseService(SingleNodeService):
    """Without a prototxt in the folder `self.net` is None, and the script brings its own model."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.net: Any = None
        networks = sorted(glob.glob(os.path.join(model_path, "*.prototxt")))
        weights = sorted(glob.glob(os.path.join(model_path, "*.caffemodel")))
        if networks and weights:
            import caffe

            self.net = caffe.Net(networks[0], weights[0], caffe.TEST)

    def _inference(self, data: Any) -> Any:
        """A forward pass; the inputs may have been set in `self.net.blobs` already."""
        for key, value in (data or {}).items():
            self.net.blobs[key].data[...] = value
        return dict(self.net.forward())
