"""Where the model and the code lie, and what the platform's variables say."""

import os

base_dir = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
model_dir = os.environ.get("SM_MODEL_DIR", os.path.join(base_dir, "model"))
code_dir = os.environ.get("SAGEMAKER_SUBMIT_DIRECTORY", os.path.join(model_dir, "code"))


class Environment:
    """The platform's variables, as they are when it is made."""

    def __init__(self) -> None:
        program = os.environ.get("SAGEMAKER_PROGRAM", "inference.py")
        self.module_name = program[:-3] if program.endswith(".py") else program
        self.model_server_timeout = int(os.environ.get("SAGEMAKER_MODEL_SERVER_TIMEOUT", "60"))
        self.model_server_workers = os.environ.get("SAGEMAKER_MODEL_SERVER_WORKERS")
        self.default_accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", "application/json")
        self.inference_http_port = os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080")
        self.management_http_port = self.inference_http_port
        self.safe_port_range = os.environ.get("SAGEMAKER_SAFE_PORT_RANGE")
