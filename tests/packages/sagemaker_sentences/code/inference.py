"""In the manner of the Hugging Face container: only the model; the container reads and writes bodies."""

from sagemaker_huggingface_inference_toolkit.decoder_encoder import decode_json


class Pipeline:
    """Stands for a pipeline of transformers, which is called with inputs and parameters."""

    def __call__(self, inputs, **parameters):
        if inputs == "raise":
            raise ValueError("no such thing")
        if hasattr(inputs, "size"):
            return {"size": list(inputs.size)}
        if isinstance(inputs, bytes):
            return {"bytes": len(inputs)}
        return [{"label": "é", "inputs": inputs, **parameters}]


def model_fn(model_dir):
    assert decode_json('{"a": 1}') == {"a": 1}
    return Pipeline()
