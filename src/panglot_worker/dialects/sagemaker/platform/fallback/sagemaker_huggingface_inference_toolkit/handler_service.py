"""The service of the Hugging Face container, for services over it."""

import os
from typing import Any, List, Optional

from panglot_worker.dialects.sagemaker import bodies
from sagemaker_huggingface_inference_toolkit import decoder_encoder
from sagemaker_huggingface_inference_toolkit.transformers_utils import (
    get_pipeline,
    infer_task_from_model_architecture,
)


class PredictionException(Exception):
    """What the model server answers with its own status and message."""

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code


class HuggingFaceHandlerService:
    """Loads a pipeline, and calls it with `inputs` and `parameters`; each step can be replaced."""

    def __init__(self) -> None:
        self.error: Any = None
        self.model: Any = None
        self.model_dir: Any = None
        self.device = -1
        self.initialized = False
        self.context: Any = None

    def initialize(self, context: Any) -> None:
        self.context = context
        self.model_dir = context.system_properties.get("model_dir")
        self.model = self.load(self.model_dir, context)
        self.initialized = True

    def load(self, model_dir: Any, context: Optional[Any] = None) -> Any:
        config = os.path.join(str(model_dir), "config.json")
        task = os.environ.get("HF_TASK") or infer_task_from_model_architecture(config)
        return get_pipeline(task=task, device=self.device, model_dir=model_dir)

    def preprocess(self, input_data: Any, content_type: Any, context: Optional[Any] = None) -> Any:
        if content_type in bodies.UTF8_TYPES and isinstance(input_data, (bytes, bytearray)):
            input_data = input_data.decode("utf-8")
        return decoder_encoder.decode(input_data, content_type)

    def predict(self, data: Any, model: Any, context: Optional[Any] = None) -> Any:
        inputs = data.pop("inputs", data)
        parameters = data.pop("parameters", None)
        return model(inputs, **parameters) if parameters is not None else model(inputs)

    def postprocess(self, prediction: Any, accept: Any, context: Optional[Any] = None) -> Any:
        return decoder_encoder.encode(prediction, accept)

    def transform_fn(
        self, model: Any, input_data: Any, content_type: Any, accept: Any, context: Optional[Any] = None
    ) -> Any:
        data = self.preprocess(input_data, content_type, context)
        return self.postprocess(self.predict(data, model, context), accept, context)

    def handle(self, data: List[Any], context: Any) -> List[Any]:
        """The answer to the only request of the list. Raises PredictionException with 400, whatever fails."""
        try:
            headers = context.get_all_request_header(0)
            kind, accept = headers.get("Content-Type"), headers.get("Accept")
            accept = bodies.JSON if not accept or bodies.ANY in accept else accept
            body = data[0].get("body")
            answer = self.transform_fn(self.model, body, kind, accept, context)
        except Exception as error:
            raise PredictionException(str(error), 400) from error
        context.set_response_content_type(0, accept)
        return [answer]
