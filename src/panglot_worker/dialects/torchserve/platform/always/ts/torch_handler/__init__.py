"""A part of what handlers import of TorchServe."""

from pkgutil import extend_path

# Modules that are not here are taken from torchserve, where it is installed.
__path__ = extend_path(__path__, __name__)
