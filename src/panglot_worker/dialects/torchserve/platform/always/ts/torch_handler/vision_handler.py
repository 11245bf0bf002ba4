"""The base of handlers for pictures. Explanations need captum, and nothing else does."""

import base64
import io

import torch
from PIL import Image

from ts.handler_utils.timer import timed
from ts.torch_handler.base_handler import BaseHandler


class VisionHandler(BaseHandler):
    """Pictures as bytes, as base64, or as lists of numbers, in one tensor."""

    def initialize(self, context):
        super().initialize(context)
        self.ig = None
        if not context.system_properties.get("limit_max_image_pixels"):
            Image.MAX_IMAGE_PIXELS = None

    @timed
    def preprocess(self, data):
        return torch.stack([self._tensor(row.get("data") or row.get("body")) for row in data]).to(self.device)

    def _tensor(self, image):
        if isinstance(image, str):
            image = base64.b64decode(image)
        if isinstance(image, (bytes, bytearray)):
            return self.image_processing(Image.open(io.BytesIO(image)))
        return torch.FloatTensor(image)

    def get_insights(self, tensor_data, _, target=0):
        from captum.attr import IntegratedGradients

        self.ig = self.ig or IntegratedGradients(self.model)
        return self.ig.attribute(tensor_data, target=target, n_steps=15).tolist()
