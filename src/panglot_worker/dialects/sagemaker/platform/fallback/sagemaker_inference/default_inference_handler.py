"""The class that containers derive their defaults from."""

from typing import Any

from sagemaker_inference import decoder, encoder, errors, utils


class DefaultInferenceHandler:
    """Defaults for bodies, none for the model."""

    def default_model_fn(self, model_dir: str, context: Any = None) -> Any:
        raise NotImplementedError("Please provide a model_fn implementation.")

    def default_input_fn(self, input_data: Any, content_type: Any, context: Any = None) -> Any:
        return decoder.decode(input_data, content_type)

    def default_predict_fn(self, data: Any, model: Any, context: Any = None) -> Any:
        raise NotImplementedError("Please provide a predict_fn implementation.")

    def default_output_fn(self, prediction: Any, accept: str, context: Any = None) -> Any:
        for content_type in utils.parse_accept(accept):
            if content_type in encoder.SUPPORTED_CONTENT_TYPES:
                return encoder.encode(prediction, content_type), content_type
        raise errors.UnsupportedFormatError(accept)
