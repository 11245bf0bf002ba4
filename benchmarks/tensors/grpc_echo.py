"""The least that gRPC costs by grpcio: every message is given back unread. Arguments: PORT, and aio or threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import uvloop


class EchoHandler(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every call."""

    def __init__(self, behaviour: Any) -> None:
        self.behaviour = grpc.unary_unary_rpc_method_handler(behaviour)

    def service(self, details: Any) -> Any:
        return self.behaviour


async def gives_back(message: bytes, context: Any) -> bytes:
    return message


async def serve(port: str) -> None:
    server = grpc.aio.server(handlers=(EchoHandler(gives_back),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


def serve_by_threads(port: str) -> None:
    server = grpc.server(ThreadPoolExecutor(64), handlers=(EchoHandler(lambda message, context: message),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    if sys.argv[2] == "aio":
        uvloop.run(serve(sys.argv[1]))
    else:
        serve_by_threads(sys.argv[1])
