"""Loading pictures, within limits. Needs OpenCV and numpy in the script's environment."""

import os

import cv2
import numpy as np

from evals.utils.error import (
    ErrorCV2ImageRead,
    ErrorFileNotExist,
    ErrorImageNdim,
    ErrorImageTooLarge,
    ErrorImageTooSmall,
    ErrorInvalidPTS,
)

MOST_BYTES = 10 * 1024 * 1024
SHORTEST, LONGEST = 32, 4999
"""A side must be longer than the first and at most the second."""


def load_image(image_file, body=None):
    """A picture as BGR pixels, of the body's bytes or of a file. Raises ErrorBase by what is wrong with it."""
    ratio = None
    if isinstance(body, (int, float)):
        # The earlier generation had the largest ratio of the sides as this argument.
        ratio, body = body, None
    if body is None:
        body = _file_bytes(image_file)
    if len(body) > MOST_BYTES:
        raise ErrorImageTooLarge(image_file)
    picture = cv2.imdecode(np.asarray(bytearray(body), dtype=np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise ErrorCV2ImageRead(image_file)
    if picture.ndim != 3:
        raise ErrorImageNdim(image_file)
    height, width = picture.shape[:2]
    if width <= SHORTEST or height <= SHORTEST:
        raise ErrorImageTooSmall(picture)
    if width > LONGEST or height > LONGEST or (ratio and max(width, height) > ratio * min(width, height)):
        raise ErrorImageTooLarge(image_file)
    return picture


def _file_bytes(path):
    if not os.path.isfile(path):
        raise ErrorFileNotExist(path)
    if os.path.getsize(path) > MOST_BYTES:
        raise ErrorImageTooLarge(path)
    with open(path, "rb") as file:
        return file.read()


def load_image_roi(image_file, roi, roi_scale=1.0, output_square=0, body=None):
    """The part of a picture between two corners (x1, y1, x2, y2), scaled about its middle, made square by choice.

    Pixels outside of the picture are black.
    """
    picture = load_image(image_file, body)
    left, top, right, bottom = (int(value) for value in roi)
    width, height = int((right - left) * roi_scale), int((bottom - top) * roi_scale)
    if output_square:
        width = height = max(width, height)
    if width <= 0 or height <= 0:
        raise ErrorInvalidPTS(roi)
    left, top = (left + right) // 2 - width // 2, (top + bottom) // 2 - height // 2
    crop = np.zeros((height, width, 3), dtype=picture.dtype)
    x1, y1 = max(left, 0), max(top, 0)
    x2, y2 = min(left + width, picture.shape[1]), min(top + height, picture.shape[0])
    if x1 < x2 and y1 < y2:
        crop[y1 - top : y2 - top, x1 - left : x2 - left] = picture[y1:y2, x1:x2]
    return crop


def load_image_roi_by_4pts(image_file, pts, roi_scale=1.0, output_square=0, body=None):
    """The part of a picture around four points."""
    check_valid_pts(pts)
    across, down = [point[0] for point in pts], [point[1] for point in pts]
    roi = (min(across), min(down), max(across), max(down))
    return load_image_roi(image_file, roi, roi_scale, output_square, body)


def check_valid_pts(pts):
    """Four points, clockwise from the upper left. Raises ErrorInvalidPTS."""
    try:
        (x1, y1), (x2, y2), (x3, y3), (x4, y4) = pts
        upright = x1 < x3 and y1 < y3 and x4 < x2 and y2 < y4
    except (TypeError, ValueError):
        raise ErrorInvalidPTS(pts) from None
    if not upright:
        raise ErrorInvalidPTS(pts)
