"""Exceptions that scripts raise and catch."""

from panglot_worker.dialects.sagemaker.bodies import UnsupportedFormatError


class ClientError(Exception):
    """An error of the user's code."""


__all__ = ["ClientError", "UnsupportedFormatError"]
