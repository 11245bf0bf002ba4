import base64
import io
import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from PIL import Image


class TritonPythonModel:
    """Reads the digit in a picture, sent as its bytes or in base64."""

    def initialize(self, args):
        path = os.path.join(args["model_repository"], args["model_version"], "digits.onnx")
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        responses, pictures, places = [None] * len(requests), [], []
        for place, request in enumerate(requests):
            rows = pb_utils.get_input_tensor_by_name(request, "PICTURE").as_numpy()
            try:
                pictures.append(np.stack([pixels(row[0]) for row in rows]))
                places.append(place)
            except (OSError, ValueError) as error:
                refusal = pb_utils.TritonError(f"this is no picture: {error}", pb_utils.TritonError.INVALID_ARG)
                responses[place] = pb_utils.InferenceResponse(error=refusal)
        if pictures:
            # One run for the rows of all requests.
            (likelihood,) = self.session.run(None, {"pixels": np.concatenate(pictures)})
            ends = np.cumsum([len(picture) for picture in pictures])
            for place, rows in zip(places, np.split(likelihood, ends[:-1]), strict=True):
                responses[place] = answer(rows)
        return responses


def pixels(content):
    if not content.startswith((b"\x89PNG", b"\xff\xd8")):
        content = base64.b64decode(content, validate=True)
    picture = Image.open(io.BytesIO(content)).convert("L").resize((8, 8))
    return np.asarray(picture, np.float32)[None] / 255


def answer(likelihood):
    digits = likelihood.argmax(axis=1).astype(np.int64)[:, None]
    outputs = [pb_utils.Tensor("DIGIT", digits), pb_utils.Tensor("LIKELIHOOD", likelihood)]
    return pb_utils.InferenceResponse(output_tensors=outputs)
