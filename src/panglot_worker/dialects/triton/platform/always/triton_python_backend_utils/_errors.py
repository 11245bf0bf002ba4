"""What goes wrong, in words that a client may read."""


class TritonModelException(Exception):
    """An error that a model raises or gets; its client may read the message."""


class TritonError:
    """An error that answers one request."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)

    def __init__(self, message, code=INTERNAL):
        if not isinstance(message, str) or isinstance(code, bool) or code not in range(8):
            raise incompatible("TritonError(message: str, code: TritonError.INTERNAL)", message, code)
        self._message = message
        self._code = code

    def message(self):
        return self._message

    def code(self):
        return self._code

    def __str__(self):
        return self._message


def incompatible(signature, *given):
    """The TypeError for arguments that are not of the types which a constructor takes."""
    sentence = "__init__(): incompatible constructor arguments. The following argument types are supported:\n    1. %s"
    return TypeError(
        (sentence + "\n\nInvoked with: %s") % (signature, ", ".join("%.200r" % (value,) for value in given))
    )


def check_parameters(parameters):
    """The parameters of a request or a response as a dict. Raises TritonModelException."""
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect dict, got %s" % type(parameters))
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(name))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
    return dict(parameters)
