"""What scoring scripts use of azureml.core."""

from azureml.core.model import Model

__all__ = ["Model"]
