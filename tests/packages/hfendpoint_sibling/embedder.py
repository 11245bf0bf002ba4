import numpy as np


class EndpointHandler:
    def __init__(self, model_dir, **kwargs):
        self.model_dir = model_dir

    def __call__(self, data):
        inputs = data["inputs"]
        sentences = [inputs] if isinstance(inputs, str) else inputs
        return {"embeddings": np.array([[len(text), 0.1] for text in sentences], dtype=np.float32)}
