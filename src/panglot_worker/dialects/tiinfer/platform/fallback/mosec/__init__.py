"""The parts of mosec that scripts use, for environments that do not have it. Panglot replaces its server."""

from mosec.errors import ClientError, DecodingError, EncodingError, ServerError, ValidationError
from mosec.log import get_logger
from mosec.runtime import Runtime
from mosec.server import Server
from mosec.worker import SSEWorker, Worker

__all__ = [
    "ClientError",
    "DecodingError",
    "EncodingError",
    "Runtime",
    "SSEWorker",
    "Server",
    "ServerError",
    "ValidationError",
    "Worker",
    "get_logger",
]
