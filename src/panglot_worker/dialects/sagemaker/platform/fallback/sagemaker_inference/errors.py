"""Exceptions that scripts raise and catch."""

from typing import Any, Optional

from panglot_worker.dialects.sagemaker.bodies import UnsupportedFormatError


class BaseInferenceToolkitError(Exception):
    """An error whose status and message the client gets."""

    def __init__(self, status_code: int, message: Any, phrase: Any) -> None:
        self.status_code = status_code
        self.message = message
        self.phrase = phrase
        super().__init__(status_code, message, phrase)


class GenericInferenceToolkitError(BaseInferenceToolkitError):
    """The same, with defaults for its texts."""

    def __init__(self, status_code: int, message: Optional[str] = None, phrase: Optional[str] = None) -> None:
        message = message or "Invalid Request"
        super().__init__(status_code, message, phrase or message)


__all__ = ["BaseInferenceToolkitError", "GenericInferenceToolkitError", "UnsupportedFormatError"]
