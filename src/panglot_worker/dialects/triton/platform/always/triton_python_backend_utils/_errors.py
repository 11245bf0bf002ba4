"""What goes wrong, in words that a client may read."""


class TritonModelException(Exception):
    """An error that a model raises or gets; its client may read the message."""


class TritonError:
    """An error that answers one request."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)

    def __init__(self, message="", code=INTERNAL):
        self._message = str(message)
        self._code = code

    def message(self):
        return self._message

    def code(self):
        return self._code

    def __str__(self):
        return self._message
