"""The training engine's answers for pictures, one line of JSON each."""

import json
import os
import sys

import numpy as np
import paddle
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [ROOT, os.path.join(ROOT, "deploy", "inference_python")]

from alexnet import alexnet  # noqa: E402
from preprocess_ops import CenterCropImage, Compose, NormalizeImage, ResizeImage, ToCHW  # noqa: E402

transforms = Compose([ResizeImage(256), CenterCropImage(224), NormalizeImage(), ToCHW()])
model = alexnet()
for path in sys.argv[1:]:
    img = transforms(Image.open(path).convert("RGB"))
    output = paddle.nn.functional.softmax(model(paddle.to_tensor(np.expand_dims(img, 0)))).numpy().flatten()
    print(json.dumps({"class_id": int(output.argmax()), "prob": float(output.max())}))
