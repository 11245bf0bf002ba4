"""The service of a container of one's own: it counts words where a script says nothing else."""

from sagemaker_inference import content_types, decoder
from sagemaker_inference.default_handler_service import DefaultHandlerService
from sagemaker_inference.default_inference_handler import DefaultInferenceHandler
from sagemaker_inference.errors import GenericInferenceToolkitError
from sagemaker_inference.transformer import Transformer


class WordHandler(DefaultInferenceHandler):
    def default_input_fn(self, input_data, content_type, context=None):
        if content_type == "text/plain":
            return bytes(input_data).decode().split()
        if content_type == content_types.JSON:
            return decoder.decode(input_data, content_type).tolist()
        raise GenericInferenceToolkitError(415, f"no {content_type} here")

    def default_predict_fn(self, data, model, context=None):
        if data == ["raise"]:
            raise ValueError("these are no words")
        return [model.get(word, 0) for word in data]


class HandlerService(DefaultHandlerService):
    def __init__(self):
        super().__init__(transformer=Transformer(default_inference_handler=WordHandler()))
        self.calls = 0

    def handle(self, data, context):
        self.calls += 1
        context.set_response_header(0, "x-calls", str(self.calls))
        if bytes(data[0]["body"]) == b"break":
            raise RuntimeError("the service breaks")
        if bytes(data[0]["body"]) == b"nothing":
            return []
        return super().handle(data, context)
