"""The toolkit's logger."""

import logging
import os


def get_logger() -> logging.Logger:
    return logging.getLogger("sagemaker-inference")


def configure_logger() -> None:
    level = os.environ.get("SAGEMAKER_CONTAINER_LOG_LEVEL", "20")
    get_logger().setLevel(int(level) if level.isdigit() else level)
