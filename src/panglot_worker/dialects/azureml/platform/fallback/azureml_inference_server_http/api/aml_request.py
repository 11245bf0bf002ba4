"""`@rawhttp` gives `run()` the HTTP request itself: Flask's where Flask is installed, else one that looks like it."""

from typing import Any, Callable, TypeVar

try:
    from flask import Request
except ImportError:
    from azureml_inference_server_http.api._http import Request  # type: ignore[assignment]

Function = TypeVar("Function", bound=Callable[..., Any])

_rawHttpRequested = False  # noqa: N816  the platform's own name


def rawhttp(func: Function) -> Function:
    """Mark the script as one whose `run()` takes the request. On the platform too, any use of it marks the script."""
    global _rawHttpRequested
    _rawHttpRequested = True
    return func


class AMLRequest(Request):
    """The name that scripts give the request in their hints."""
