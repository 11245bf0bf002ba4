"""The handler `image_segmenter`: for each pixel its class and the probability of it."""

import torch

from ts.torch_handler.image_classifier import ImageClassifier
from ts.torch_handler.vision_handler import VisionHandler


class ImageSegmenter(VisionHandler):
    """Takes the entry `out` of the model's answer."""

    image_processing = ImageClassifier.image_processing

    def postprocess(self, data):
        best = torch.max(torch.nn.functional.softmax(data["out"], dim=1), dim=1)
        return torch.stack([best.indices.type(best.values.dtype), best.values], dim=3).tolist()
