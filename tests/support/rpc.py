"""Calls of gRPC with message classes that the server itself describes, by reflection."""

from __future__ import annotations

import struct
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from panglot_worker.tensors import protobuf
from support.server import Server

SERVICE = "inference.GRPCInferenceService"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def address(server: Server) -> str:
    return "127.0.0.1:" + server.wait_log(r"listening on grpcs?://\S+:(\d+)")[1]


def reflected(channel: grpc.Channel, request: bytes, metadata: Any = None) -> dict[int, bytes]:
    """The fields of a ServerReflectionResponse."""
    (answer,) = channel.stream_stream(REFLECTION)(iter([request]), metadata=metadata, timeout=20)
    return {number: bytes(content) for number, _, content in protobuf.fields(memoryview(answer))}


class Rpc:
    """A client of one server."""

    def __init__(self, server: Server, credentials: Any = None, token: str = "") -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        where = address(server)
        if credentials is None:
            self.channel = grpc.insecure_channel(where, options)
        else:
            self.channel = grpc.secure_channel(where.replace("127.0.0.1", "localhost"), credentials, options)
        self.metadata = [("authorization", f"Bearer {token}")] if token else None
        self.pool = descriptor_pool.DescriptorPool()
        for symbol in (SERVICE, "grpc.health.v1.Health"):
            found = reflected(self.channel, protobuf.text(4, symbol), self.metadata)[4]
            (file,) = (content for _, _, content in protobuf.fields(memoryview(found)))
            self.pool.Add(descriptor_pb2.FileDescriptorProto.FromString(bytes(file)))

    def kind(self, name: str) -> Any:
        """The class of a message of the inference package."""
        full = name if "." in name else f"inference.{name}"
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(full))

    def call(self, method: str, request: Any = None, **more: Any) -> Any:
        """One call with one answer."""
        answer = self.kind(f"{method}Response")
        body = (request if request is not None else self.kind(f"{method}Request")()).SerializeToString()
        raw = self.channel.unary_unary(f"/{SERVICE}/{method}")
        return answer.FromString(raw(body, **{"metadata": self.metadata, "timeout": 30, **more}))

    def tensors(self, model: str, raw: bool = True, **arrays: Any) -> Any:
        """A ModelInferRequest with tensors of FP32, or of BYTES for what is a list of bytes."""
        request = self.kind("ModelInferRequest")(model_name=model)
        for name, values in arrays.items():
            text = isinstance(values[0], bytes) if values else False
            tensor = request.inputs.add(name=name, datatype="BYTES" if text else "FP32", shape=[len(values)])
            if raw and not text:
                request.raw_input_contents.append(b"".join(struct.pack("<f", value) for value in values))
            elif text:
                tensor.contents.bytes_contents.extend(values)
            else:
                tensor.contents.fp32_contents.extend(values)
        return request

    def close(self) -> None:
        self.channel.close()
