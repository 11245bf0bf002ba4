import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image


class TritonPythonModel:
    """Pictures to tensors, for a model behind it. There is no config.pbtxt: the class says what it takes."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        auto_complete_model_config.add_input({"name": "PICTURE", "data_type": "TYPE_STRING", "dims": [1]})
        auto_complete_model_config.add_output({"name": "PIXELS", "data_type": "TYPE_FP32", "dims": [3, 8, 8]})
        auto_complete_model_config.set_max_batch_size(4)
        auto_complete_model_config.set_dynamic_batching()
        return auto_complete_model_config

    def execute(self, requests):
        responses = []
        for request in requests:
            rows = pb_utils.get_input_tensor_by_name(request, "PICTURE").as_numpy()
            try:
                pixels = np.stack([self.pixels(row[0]) for row in rows])
            except OSError as error:
                responses.append(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), 3)))
                continue
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("PIXELS", pixels)]))
        return responses

    def pixels(self, content):
        picture = Image.open(io.BytesIO(content)).convert("RGB").resize((8, 8))
        return (np.asarray(picture, np.float32) / 255).transpose(2, 0, 1)
