"""From a picture to the array a net takes."""

import numpy as np
from PIL import Image


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img


class ResizeImage:
    """The short edge gets this size."""

    def __init__(self, resize_size=None, interpolation=Image.BILINEAR):
        self.resize_size = resize_size
        self.interpolation = interpolation

    def __call__(self, img):
        width, height = img.size
        scale = self.resize_size / min(width, height)
        return img.resize((round(width * scale), round(height * scale)), self.interpolation)


class CenterCropImage:
    def __init__(self, size):
        self.size = size

    def __call__(self, img):
        left, top = (img.width - self.size) // 2, (img.height - self.size) // 2
        return img.crop((left, top, left + self.size, top + self.size))


class NormalizeImage:
    """Bytes to numbers around zero."""

    def __init__(self, scale=1 / 255, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)):
        self.scale = scale
        self.mean = np.array(mean, "float32")
        self.std = np.array(std, "float32")

    def __call__(self, img):
        return (np.asarray(img).astype("float32") * np.float32(self.scale) - self.mean) / self.std


class ToCHW:
    def __call__(self, img):
        return np.ascontiguousarray(img.transpose(2, 0, 1))
