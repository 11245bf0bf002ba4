"""The class that scripts derive their own defaults from."""

from sagemaker_inference.default_inference_handler import DefaultInferenceHandler


class DefaultPytorchInferenceHandler(DefaultInferenceHandler):
    """The defaults for bodies; those for the model are in the server."""
