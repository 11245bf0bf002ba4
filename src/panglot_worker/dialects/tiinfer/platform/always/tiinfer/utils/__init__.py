"""Helpers for pictures: reading them from requests, scaling and filling them up. Needs numpy, OpenCV and Pillow."""

from tiinfer.utils.imageutil import Horizontal, Vertical, fill_image, scale_fill_image, scale_image
from tiinfer.utils.ioutil import (
    base64bytes_to_nparray,
    base64bytes_to_pil_image,
    image_to_cv2_mat,
    image_to_pil_image,
)

__all__ = [
    "Horizontal",
    "Vertical",
    "base64bytes_to_nparray",
    "base64bytes_to_pil_image",
    "fill_image",
    "image_to_cv2_mat",
    "image_to_pil_image",
    "scale_fill_image",
    "scale_image",
]
