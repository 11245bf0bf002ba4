"""What handlers import of TorchServe."""

from pkgutil import extend_path

# Modules that are not here are taken from torchserve, where it is installed.
__path__ = extend_path(__path__, __name__)

__version__ = "0.12.0"
__distributions__ = {"ts": "torchserve"}
"""The distribution that has what is not here."""
