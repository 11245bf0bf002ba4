"""The service that the model server calls: it hands each request to a transformer."""

import os
from typing import Any, Optional

from sagemaker_inference.transformer import Transformer

PYTHON_PATH_ENV = "PYTHONPATH"


class DefaultHandlerService:
    """Has a transformer load the model, and answer requests."""

    def __init__(self, transformer: Optional[Any] = None) -> None:
        self._service = transformer if transformer else Transformer()

    def initialize(self, context: Any) -> None:
        model_dir = context.system_properties.get("model_dir")
        # For processes that the script starts; its own import path has the folder already.
        code = os.path.join(str(model_dir), "code")
        os.environ[PYTHON_PATH_ENV] = os.pathsep.join(filter(None, (code, os.environ.get(PYTHON_PATH_ENV))))
        self._service.validate_and_initialize(model_dir=model_dir, context=context)

    def handle(self, data: Any, context: Any) -> Any:
        return self._service.transform(data, context)
