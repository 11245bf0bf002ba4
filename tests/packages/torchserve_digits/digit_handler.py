"""Digits, over the platform's classifier of pictures."""

from torchvision import transforms
from ts.torch_handler.image_classifier import ImageClassifier


class DigitClassifier(ImageClassifier):
    topk = 1
    image_processing = transforms.Compose(
        [
            transforms.Grayscale(),
            transforms.Resize((28, 28)),
            transforms.ToTensor(),
            transforms.Normalize((0.5,), (0.5,)),
        ]
    )

    def postprocess(self, data):
        return [next(iter(row)) for row in super().postprocess(data)]
