"""The handler `image_classifier`: the five most likely classes of a picture."""

import torch
from torchvision import transforms

from ts.handler_utils.timer import timed
from ts.torch_handler.vision_handler import VisionHandler
from ts.utils.util import map_class_to_label

IMAGENET = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])


class ImageClassifier(VisionHandler):
    """Answers with the probabilities of the first `topk` classes, by label."""

    topk = 5
    image_processing = transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), IMAGENET]
    )

    def set_max_result_classes(self, topk):
        self.topk = topk

    def get_max_result_classes(self):
        return self.topk

    @timed
    def postprocess(self, data):
        values, kinds = torch.topk(torch.nn.functional.softmax(data, dim=1), self.topk, dim=1)
        return map_class_to_label(values.tolist(), self.mapping, kinds.tolist())
