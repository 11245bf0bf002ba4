"""What starts the model server in a container; here the server runs already."""

from typing import Any

DEFAULT_HANDLER_SERVICE = "sagemaker_inference.default_handler_service"


def start_model_server(handler_service: str = DEFAULT_HANDLER_SERVICE, **options: Any) -> None:
    """Do nothing: scripts call it under `__main__`, which does not run here."""
