"""Make digits.npz and the sample request from the digits of scikit-learn: `python train.py`."""

import base64
import io
import json
import pathlib

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
TRAINED = 1500

data = load_digits()
inputs = data.images.reshape(len(data.images), -1) / 16
model = LogisticRegression(C=1.0, max_iter=500).fit(inputs[:TRAINED], data.target[:TRAINED])
print(f"right on {model.score(inputs[TRAINED:], data.target[TRAINED:]):.1%} of {len(inputs) - TRAINED} others")
np.savez_compressed(
    HERE / "digits.npz", weights=model.coef_.T.astype(np.float32), bias=model.intercept_.astype(np.float32)
)

seven = next(index for index in range(TRAINED, len(inputs)) if data.target[index] == 7)
picture = Image.fromarray((data.images[seven] * 255 / 16).astype(np.uint8)).resize((64, 64), Image.Resampling.NEAREST)
buffer = io.BytesIO()
picture.save(buffer, "PNG", optimize=True)
request = {"images": [base64.b64encode(buffer.getvalue()).decode()]}
(HERE / "request.json").write_text(json.dumps(request) + "\n")
config = {
    "apis": [
        {
            "protocol": "http",
            "url": "/v1/models/m:predict",
            "method": "POST",
            "request_example": request,
            "response_example": {"result": {"digit": 7, "score": 0.99}, "digits": [7]},
        }
    ]
}
(HERE / "config.json").write_text(json.dumps(config, indent=2) + "\n")
