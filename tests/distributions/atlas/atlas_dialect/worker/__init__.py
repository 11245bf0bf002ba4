"""The atlas in the worker: it answers with what it was told of the request."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict

from panglot_worker.bodies import codec
from panglot_worker.dialects.base import Answer, Dialect, Request, Stages
from panglot_worker.tensors import protobuf

GRPC = "application/grpc"


class Atlas(Dialect):
    def load(self, progress: Callable[[str], None]) -> Stages:
        return Stages(decode=self.decode, infer=self.infer, encode=self.encode)

    def describe(self) -> Dict[str, Any]:
        return {"entry": "answer", "stages": [], "summary": "", "example": {"kind": "json", "value": {}}}

    def decode(self, request: Request) -> Any:
        head = request.head
        told = {
            "model": self.package.name,
            "method": head.method.decode(),
            "route": head.route.decode(),
            "path": head.path.decode(),
            "values": head.path_values,
            "headers": head.headers.decode(),
            "size": len(request.body),
        }
        if request.content_type == GRPC:
            fields = {number: content for number, _, content in protobuf.fields(memoryview(request.body))}
            told["text"] = bytes(fields.get(5, b"")).decode()[:20]
        return told

    def infer(self, told: Any) -> Any:
        text = told.get("text", "")
        if text == "fail":
            raise ValueError("no")
        if text.startswith("parts "):
            return (dict(told, part=part) for part in range(int(text[6:])))
        return told

    def encode(self, output: Any, request: Request) -> Answer:
        if request.content_type == GRPC:
            return Answer(GRPC, as_message(output))
        return Answer("application/json", codec.encode(output, "", codec.Limits(), "null").body)

    def stream_type(self, request: Request) -> str:
        return request.content_type

    def encode_part(self, output: Any, content_type: str) -> bytes:
        return as_message(output)


def as_message(told: Any) -> bytes:
    return protobuf.text(1, json.dumps(told))


DIALECT = Atlas
