"""The network behind one method: pictures in, digits out."""

import os

import numpy as np
import onnxruntime
from PIL import Image, ImageFilter, ImageOps


class Reader:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)  # 0: onnxruntime decides
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def read(self, pictures):
        """The digit in each picture, with how sure that is."""
        features = np.stack([to_features(picture) for picture in pictures])
        found = self.session.run(None, {"features": features})[0]
        return [(int(one.argmax()), round(float(one.max()), 4)) for one in found]


def to_features(picture):
    """8x8 cells from 0 to 1 of a blue, green, red array: the digit cut out, centred, and thick enough."""
    grey = Image.fromarray(picture[:, :, ::-1]).convert("F")
    grey.thumbnail((256, 256))
    grey = np.asarray(grey)
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey - np.median(border))
    if ink.max() < 16:
        return np.zeros(64, np.float32)  # a blank page
    ink = Image.fromarray((255 * (2.5 * ink / ink.max() - 0.75).clip(0, 1)).astype(np.uint8))
    ink = ink.crop(ink.getbbox())
    width = min(24, max(1, round(32 * ink.width / ink.height)))
    canvas = Image.new("L", (32, 32))
    canvas.paste(ink.resize((width, 32), Image.BILINEAR), ((32 - width) // 2, 0))
    canvas = ImageOps.autocontrast(canvas)
    while 0 < np.asarray(canvas).mean() < 0.24 * 255:
        canvas = canvas.filter(ImageFilter.MaxFilter(3))
    cells = np.asarray(canvas, np.float32).reshape(8, 4, 8, 4).mean(axis=(1, 3)).ravel()
    return cells / max(cells.max(), 1)
